//! Any text is a list of cores that reads back as written, or none.
#![no_main]

#[path = "../../crates/machine/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::cpu_list(data));
