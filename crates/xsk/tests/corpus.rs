//! The fuzz target's property over its corpus, over random bytes, and over frames that are nearly right.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use fuzzed::xsk_frame;
use headway_xsk::echo_frame;
use proptest::prelude::*;

#[test]
fn any_frame_of_the_corpus() {
    replay::replay("xsk_frame", xsk_frame);
}

/// What a server hears and what it does not: the names of the corpus say it.
#[test]
fn the_corpus_has_frames_of_both_kinds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/xsk_frame");
    for file in std::fs::read_dir(folder).expect("the corpus") {
        let file = file.expect("a file");
        let frame = std::fs::read(file.path()).expect("its bytes");
        let is_heard = echo_frame(&frame, &mut [0; 4096]).is_some();
        let name = file.file_name().to_string_lossy().into_owned();
        assert_eq!(is_heard, name.starts_with("heard"), "{name}");
    }
}

proptest! {
    #[test]
    fn any_bytes(frame in prop::collection::vec(any::<u8>(), 0..2000)) {
        xsk_frame(&frame);
    }

    /// Whoever changes a byte of a frame without a checksum gets past the first checks.
    #[test]
    fn any_frame_that_is_nearly_right(
        which in 0..4_usize, changes in prop::collection::vec((0..80_usize, any::<u8>()), 0..4), length in 0..200_usize,
    ) {
        let names = ["heard-ip4-unchecked", "heard-ip6-tagged", "heard-ip4-twice-tagged", "unheard-fragment"];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/xsk_frame/");
        let mut frame = std::fs::read(format!("{folder}{}", names[which])).expect("the seed");
        for (at, byte) in changes {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        frame.resize(length.max(30), 0xaa);
        xsk_frame(&frame);
    }
}
