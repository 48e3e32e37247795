//! The fuzz target's property over its corpus.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn cpu_list() {
    replay::replay("cpu_list", fuzzed::cpu_list);
}
