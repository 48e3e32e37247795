//! Any bytes on a control socket are requests that read back as written, or errors.
#![no_main]

#[path = "../../crates/cli/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::ctl_request(data));
