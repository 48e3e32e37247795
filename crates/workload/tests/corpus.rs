//! The fuzz target's property over its corpus.

use crate::fuzzed;
use crate::replay::replay;

#[test]
fn workload_file() {
    replay("workload_file", fuzzed::workload_file);
}
