//! A probe placed by hand.
#![expect(unsafe_code, reason = "the probe is assembly")]

use std::arch::asm;

use crate::abi::words::{ASKED_OFFSET, SELF_TIMED};
use crate::local::{self, preempt_offset};
use crate::no_preempt::NoPreempt;
use crate::slice_timer::raise_if_due;
use crate::slow;
use crate::stub::__headway_checkpoint;

/// Yields if another thread asked this one to. Otherwise it costs a load and a branch that is not taken.
///
/// For code without probes of the compiler pass. Put it into loops, often enough that the code notices the end of a quantum in time.
#[inline(always)]
pub fn checkpoint() {
    // SAFETY: the comparison reads this thread's line, which no Rust code knows as memory; the cold path is an ordinary call.
    unsafe {
        asm!("cmp qword ptr fs:[{0} + {2}], 0", "jne {1}", in(reg) preempt_offset(),
            label {
                // SAFETY: the running code has a page of stack left, as every call needs.
                unsafe { __headway_checkpoint() }
            },
            const ASKED_OFFSET,
            options(nostack, nomem));
    }
}

impl NoPreempt {
    /// A probe inside a section: whether the fiber must yield when the section ends. Otherwise it costs two loads and branches that are not taken.
    ///
    /// For loops that hold something of their thread, such as an iterator over a store, and can let go of it: they look in each round, and end
    /// the section when they must. Code that does not ask keeps its section, and the request waits for the section's end as without this probe.
    /// In an inner section the answer is `false`, since its end does not yield.
    ///
    /// ```
    /// use headway_fiber::NoPreempt;
    ///
    /// fn sum(map: &std::collections::BTreeMap<u64, u64>) -> u64 {
    ///     let (mut sum, mut next) = (0, Some(0));
    ///     while let Some(first) = next.take() {
    ///         let section = NoPreempt::enter();
    ///         for (key, value) in map.range(first..) {
    ///             sum += value;
    ///             if section.must_yield() {
    ///                 next = Some(key + 1);
    ///                 break;
    ///             }
    ///         }
    ///         // Here the section ends, and nothing refers to the map.
    ///     }
    ///     sum
    /// }
    /// # assert_eq!(sum(&[(1, 2), (3, 4)].into()), 6);
    /// ```
    #[inline(always)]
    #[must_use = "a request to yield takes effect when the section ends"]
    pub fn must_yield(&self) -> bool {
        (local::asked() != 0 || local::deferred() != 0) && slow::must_yield_at_end()
    }
}

/// As [`checkpoint`](checkpoint()), in virtual time: the thread's clock reads `ticks` now, whatever the time-stamp counter says.
pub fn checkpoint_at(ticks: u64) {
    raise_if_due(ticks);
    match local::asked() {
        0 => {}
        SELF_TIMED if ticks < local::deadline() => {}
        SELF_TIMED => {
            local::set_met_tsc(ticks);
            slow::late();
        }
        _ => slow::preempted(),
    }
}

/// A probe placed by hand in a loop with short rounds: every `N`th call of [`checkpoint`](Self::checkpoint) is a probe, the others count.
///
/// The value holds the count. As a local variable it stays with its fiber when the fiber changes threads.
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

    /// Starts at zero: the `N`th call is the first probe.
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

    /// Makes the next call a probe.
    #[inline(always)]
    #[must_use]
    pub const fn due() -> Self {
        let () = Self::VALID;
        Self { left: 1 }
    }

    /// Counts; every `N`th call is a [`checkpoint`](checkpoint()).
    #[inline(always)]
    pub fn checkpoint(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = N;
            checkpoint();
        }
    }
}
