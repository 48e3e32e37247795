//! The fuzz target's property over its corpus.

#[path = "../fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn host_registration() {
    replay::replay("host_registration", fuzzed::host_registration);
}
