//! A property of the parser of frames that holds for any bytes. `cargo test` checks it on random frames and on the corpus, and the fuzz target includes this
//! file.

use headway_xsk::echo_frame;

/// The most bytes of a frame in packet memory.
const FRAME_BYTES: usize = 4096;

/// Any bytes are a frame that is answered, or one that is not heard. An answer is a whole frame: who gets it can answer it too, and the answer to that is the
/// same as to the first.
pub(crate) fn xsk_frame(frame: &[u8]) {
    let mut answer = [0; FRAME_BYTES];
    let Some(length) = echo_frame(frame, &mut answer) else {
        return;
    };
    let answer = &answer[..length];
    // A short frame is padded behind its datagram.
    assert!(length <= frame.len(), "{length} of {}", frame.len());
    assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
    // Nobody answers a frame that came to a multicast address.
    if answer[6] & 1 == 1 {
        return;
    }
    let mut back = [0; FRAME_BYTES];
    let Some(length) = echo_frame(answer, &mut back) else {
        // Who asked from an address at which nobody answers was not heard; the address that was asked may be one.
        return;
    };
    let mut again = [0; FRAME_BYTES];
    let repeated = echo_frame(&back[..length], &mut again);
    assert_eq!(repeated.map(|length| &again[..length]), Some(answer));
}
