//! Any text is a classifier spec or an error that points into it.
#![no_main]

#[path = "../../crates/net/tests/fuzzed/mod.rs"]
#[allow(dead_code, reason = "each target checks one of the properties")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::spec(data));
