//! What a request does, by the seed and its number alone.

use std::hint::black_box;
use std::panic::resume_unwind;

use headway_runtime::{Call, checkpoint};

use super::Rng;

/// The request's place in the workload: a replay hands handlers nothing of a request but its work, UDP a field of its header.
pub(crate) fn index_of(call: &Call<'_>) -> u32 {
    match call.service_hint_ns() {
        0 => call.header_time_ns(),
        place => (place - 1) as u32,
    }
}

/// The behaviour of a request, which depends on the seed and its number only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handling(u64);

/// The payload of a panic that no hook prints.
struct Planned;

impl Handling {
    pub(crate) fn of(seed: u64, index: u32) -> Self {
        Self(Rng(seed ^ u64::from(index) << 32).next())
    }

    fn is_long(self) -> bool {
        self.0.is_multiple_of(8)
    }

    /// A few of the longs, and of the shorts.
    pub(crate) fn panics(self) -> bool {
        (self.0 >> 8).is_multiple_of(40)
    }

    /// Some shorts say that they are longs.
    pub(crate) fn class(self) -> u8 {
        u8::from(self.is_long() ^ (self.0 >> 16).is_multiple_of(50))
    }

    pub(crate) fn handle(self, call: &mut Call<'_>) {
        let rounds = if self.is_long() {
            200 + (self.0 >> 24) % 1_500
        } else {
            (self.0 >> 24) % 30
        };
        // Correct and incorrect uses by applications.
        match (self.0 >> 40) % 8 {
            0 => call.feedback_start(),
            1 => {
                call.feedback_start();
                call.feedback_start();
                self.compute(rounds / 2);
                call.feedback_finished();
            }
            2 => call.feedback_finished(),
            3 => call.long(|_| self.compute(rounds / 2)),
            4 => {
                call.feedback_start();
                call.feedback_finished();
                call.feedback_finished();
            }
            5 | 6 if self.is_long() => call.feedback_start(),
            _ => {}
        }
        self.compute(rounds);
        if self.panics() {
            resume_unwind(Box::new(Planned));
        }
        call.reply_in_place();
    }

    /// Keeps values in registers and on the stack over many checkpoints, and looks whether they are still there.
    fn compute(self, rounds: u64) {
        let kept: [u64; 8] = std::array::from_fn(|place| self.0.rotate_left(8 * place as u32));
        let mut state = Rng(self.0);
        for _ in 0..rounds {
            black_box(state.next());
            checkpoint();
        }
        let expected = self
            .0
            .wrapping_add(rounds.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert_eq!(state.0, expected, "a suspension lost a register");
        for (place, word) in black_box(kept).into_iter().enumerate() {
            assert_eq!(word, self.0.rotate_left(8 * place as u32));
        }
    }
}
