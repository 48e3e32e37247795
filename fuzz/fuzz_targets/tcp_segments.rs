//! Headers of TCP are written as they were read, and a stack takes any segments.
#![no_main]

#[path = "../../crates/stack/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::segments(data));
