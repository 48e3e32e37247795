//! Any text is a workload that can be drawn from and written back, or an error.
#![no_main]

#[path = "../../crates/workload/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::workload_file(data));
