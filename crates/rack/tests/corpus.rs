//! The fuzz target's property over its corpus and over random packets.

mod common;
mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use proptest::prelude::*;

#[test]
fn rack_switch() {
    replay::replay("rack_switch", fuzzed::rack_switch);
}

proptest! {
    #[test]
    fn any_packets(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        fuzzed::rack_switch(&script);
    }
}
