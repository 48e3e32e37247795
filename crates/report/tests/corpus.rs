//! The fuzz target's property over its corpus.

use crate::fuzzed;
use crate::replay::replay;

#[test]
fn slo() {
    replay("slo", fuzzed::slo);
}
