//! The rack's switch takes any packets, and answers no request twice.
#![no_main]

#[path = "../../crates/rack/tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod common;
#[path = "../../crates/rack/tests/fuzzed/mod.rs"]
#[allow(dead_code, reason = "another target's property is in it too")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::rack_switch(data));
