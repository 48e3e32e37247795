//! Any file is a key of the right length, or an error that names it.
#![no_main]

#[path = "../../crates/rack/tests/fuzzed/key_file.rs"]
mod key_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| key_file::key_file(data));
