//! The fuzz target's property over its corpus.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn workload_file() {
    replay::replay("workload_file", fuzzed::workload_file);
}
