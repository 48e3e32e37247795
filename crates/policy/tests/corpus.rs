//! The fuzz target's property over its corpus.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn policy_spec() {
    replay::replay("policy_spec", fuzzed::policy_spec);
}
