//! Any bytes are a frame that a server on `AF_XDP` answers or does not hear, and an answer is a whole frame.
#![no_main]

#[path = "../../crates/xsk/tests/fuzzed/mod.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::xsk_frame(data));
