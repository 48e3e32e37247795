//! Any bytes at the daemon's socket are registrations that read back as written, or errors.
#![no_main]

#[path = "../../crates/host/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::host_registration(data));
