//! The fuzz target's property over its corpus.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn ctl_request() {
    replay::replay("ctl_request", fuzzed::ctl_request);
}
