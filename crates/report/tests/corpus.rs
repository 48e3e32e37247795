//! The fuzz target's property over its corpus.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn slo() {
    replay::replay("slo", fuzzed::slo);
}
