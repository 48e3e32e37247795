//! The wire header parses any bytes and writes back what it read.
#![no_main]

#[path = "../../crates/net/tests/fuzzed/mod.rs"]
#[allow(dead_code, reason = "each target checks one of the properties")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::header(data));
