//! Any bytes are a packet between agents and a rack that reads back as written, or an error.
#![no_main]

#[path = "../../crates/rack/tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod common;
#[path = "../../crates/rack/tests/fuzzed/mod.rs"]
#[allow(dead_code, reason = "another target's property is in it too")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::agent_message(data));
