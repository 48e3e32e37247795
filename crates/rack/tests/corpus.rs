//! The fuzz targets' properties over their corpora and over random packets.

use crate::fuzzed;
use crate::replay::replay;
use proptest::prelude::*;

#[test]
fn rack_switch() {
    replay("rack_switch", fuzzed::rack_switch);
}

#[test]
fn agent_message() {
    replay("agent_message", fuzzed::agent_message);
}

#[test]
fn key_file() {
    replay("key_file", crate::key_file::key_file);
}

proptest! {
    #[test]
    fn any_agent_message(script in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzed::agent_message(&script);
    }

    #[test]
    fn any_packets(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        fuzzed::rack_switch(&script);
    }
}
