//! What a fuzzer once found, replayed. A program of its own, as in the other crates.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn tcp_segments() {
    replay::replay("tcp_segments", fuzzed::segments);
}
