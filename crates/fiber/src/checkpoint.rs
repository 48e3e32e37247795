//! A probe placed by hand.
#![expect(unsafe_code, reason = "the probe is assembly")]

use std::arch::asm;

use crate::abi::{__headway_checkpoint, ASKED_OFFSET};
use crate::local::preempt_offset;

/// Yields if this thread was asked to: a load and a branch that is not taken.
///
/// For code that the compiler pass does not see. Put it into loops, often enough that a quantum's end is noticed in time.
#[inline(always)]
pub fn checkpoint() {
    // SAFETY: the comparison reads this thread's line, which no Rust code knows as memory; the cold path is an ordinary call.
    unsafe {
        asm!("cmp qword ptr fs:[{0} + {2}], 0", "jne {1}", in(reg) preempt_offset(),
            label {
                // SAFETY: whoever runs this code has the stack for it.
                unsafe { __headway_checkpoint() }
            },
            const ASKED_OFFSET,
            options(nostack, nomem));
    }
}

/// A probe placed by hand in a loop whose rounds are short: every `N`th call of [`checkpoint`](Self::checkpoint) is one, the others count.
///
/// The count lies wherever the value does: as a variable of the function that loops it goes along when a fiber changes threads.
///
/// ```
/// use headway_fiber::CheckpointEvery;
///
/// let (mut sum, mut rounds) = (0, CheckpointEvery::<64>::new());
/// for value in 0..1000_u64 {
///     rounds.checkpoint();
///     sum += value;
/// }
/// # assert_eq!(sum, 499_500);
/// ```
#[derive(Debug)]
pub struct CheckpointEvery<const N: u32> {
    left: u32,
}

impl<const N: u32> CheckpointEvery<N> {
    const VALID: () = assert!(N > 0, "one round in none");

    /// The `N`th call will be the first that looks.
    #[inline(always)]
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "it is half of a pair with `due`"
    )]
    pub const fn new() -> Self {
        let () = Self::VALID;
        Self { left: N }
    }

    /// The next call will look.
    #[inline(always)]
    #[must_use]
    pub const fn due() -> Self {
        let () = Self::VALID;
        Self { left: 1 }
    }

    /// Counts, and [looks](checkpoint) if it is time.
    #[inline(always)]
    pub fn checkpoint(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = N;
            checkpoint();
        }
    }
}
