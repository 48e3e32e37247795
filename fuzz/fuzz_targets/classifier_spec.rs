//! Any text is a classifier spec or an error that points into it.
#![no_main]

#[path = "../../crates/net/tests/properties/mod.rs"]
#[allow(dead_code, reason = "each target checks one of the properties")]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::spec(data));
