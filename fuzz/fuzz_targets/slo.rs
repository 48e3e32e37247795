//! Any text is an SLO that reads back as written, or an error that points into it.
#![no_main]

#[path = "../../crates/report/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::slo(data));
