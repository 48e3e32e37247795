//! Any text is a policy spec that reads back as written and builds, or an error.
#![no_main]

#[path = "../../crates/policy/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::policy_spec(data));
