//! Threads that take part, and the flags by which others ask them to yield.
#![expect(unsafe_code, reason = "flags point into another thread's line")]

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::abi::{NEVER, SELF_TIMED};
use crate::kept::adopt_control_words;
use crate::local;
use crate::overflow::AlternateStack;

/// This thread takes part in preemption: it owns its line, and says what it works on.
///
/// Dropping it waits until all [`Flag`]s of the thread are gone, for they point into its memory; so never keep one of them in the
/// thread itself beyond that. (A thread that leaks it waits at its end.)
#[derive(Debug)]
pub struct Attached {
    flags: Arc<Flags>,
    /// For the report of an overflow.
    _signals: AlternateStack,
    /// Belongs to its thread.
    bound: PhantomData<*mut ()>,
}

impl Attached {
    /// Makes the calling thread take part.
    ///
    /// # Panics
    /// It does already.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the thread, once"
    )]
    pub fn new() -> Attached {
        THREAD.with(|thread| {
            assert!(
                !thread.attached.replace(true),
                "the thread takes part already"
            );
            let attached = Attached {
                flags: Arc::clone(&thread.flags),
                _signals: AlternateStack::ensure(),
                bound: PhantomData,
            };
            adopt_control_words();
            attached.self_timed(false);
            attached.set_next_writes([local::shared_line().cast(); 2]);
            attached.set_deadline(NEVER);
            attached.begin(0);
            attached
        })
    }

    /// A handle by which other threads ask this one to yield.
    pub fn flag(&self) -> Flag {
        *self.flags.outstanding() += 1;
        Flag {
            line: local::shared_line(),
            flags: Arc::clone(&self.flags),
        }
    }

    /// An assignment starts, a request's first turn or a later one. Requests made of earlier assignments are forgotten, and later ones of
    /// them will have no effect; nor have no-preempt sections left open.
    ///
    /// `epoch` is for this assignment only, neither 0 nor `u64::MAX`; a counter will do. Whoever is to raise the flag must learn it, so it is
    /// told after this call.
    #[inline]
    pub fn begin(&self, epoch: u64) {
        local::set_epoch(epoch);
        local::set_no_preempt(0);
        local::set_deferred(0);
        if local::told() != 0 {
            local::set_told(0);
        }
        let (asked, resting) = (local::asked(), local::resting());
        if asked != resting && asked != epoch {
            local::answer(asked, resting);
        }
    }

    /// Whether this thread looks at the clock at its probes, instead of waiting to be asked: at every one, or where they lie less than 0.1 µs
    /// apart at every second to sixteenth, so that some 0.2 µs pass between two looks. It yields when the
    /// [deadline](Attached::set_deadline) has passed. It can be asked nonetheless.
    pub fn self_timed(&self, on: bool) {
        let resting = if on { SELF_TIMED } else { 0 };
        local::set_resting(resting);
        while !local::answer(local::asked(), resting) {}
    }

    /// From when a self-timed thread yields, and one whose code has TSC probes: a reading of the time-stamp counter, `u64::MAX` for never.
    /// It is used up by the yield.
    #[inline]
    pub fn set_deadline(&self, tsc: u64) {
        local::set_deadline(tsc);
    }

    /// What who asked said [beside](Flag::raise_with) the request that this assignment was granted; 0 for nothing, or if it was granted none.
    #[inline]
    pub fn told(&self) -> u64 {
        local::told()
    }

    /// What this thread will write to once another has made it yield, such as where it reports to that one: the probe begins to fetch the lines. Any
    /// addresses will do; they hold until others are set.
    #[inline]
    pub fn set_next_writes(&self, addresses: [*const (); 2]) {
        local::set_next_writes(addresses);
    }

    /// What this thread will read once it has yielded, such as the place where others leave work for it: a probe that yields begins to fetch it. Any
    /// address will do.
    #[inline]
    pub fn set_next_read(&self, address: *const ()) {
        local::set_next_read(address);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.flags.wait();
        self.self_timed(false);
        self.begin(0);
        // Another value of the thread's may be dropped after `THREAD`.
        let _ = THREAD.try_with(|thread| thread.attached.set(false));
    }
}

/// Asks a thread to yield. Cheap to clone but for a lock; may be sent anywhere.
#[derive(Debug)]
pub struct Flag {
    line: *const AtomicU64,
    flags: Arc<Flags>,
}

// SAFETY: the line is an atomic word, and outlives every flag: see `Thread`.
unsafe impl Send for Flag {}
// SAFETY: as above.
unsafe impl Sync for Flag {}

impl Flag {
    /// Asks the assignment of that epoch to yield: one store to the thread's line. It has no effect when that assignment is over.
    ///
    /// A request made before another was noticed replaces it: one thread at a time may ask.
    #[inline]
    pub fn raise(&self, epoch: u64) {
        self.raise_with(epoch, 0);
    }

    /// As [`raise`](Self::raise), with something to [tell](Attached::told) whom the request is granted: it comes over with the same cache line. What
    /// is said later beside another request for the same assignment may be told in its place.
    #[inline]
    pub fn raise_with(&self, epoch: u64, message: u64) {
        debug_assert!(epoch != 0 && epoch != SELF_TIMED, "an epoch");
        // SAFETY: the line lives as long as a flag does, and the second of its eight words is atomic too.
        unsafe {
            // Release: it may be read beside the request before, of which it is not the message.
            (*self.line.add(1)).store(message, Ordering::Release);
            (*self.line).store(epoch, Ordering::Release);
        }
    }
}

impl Clone for Flag {
    fn clone(&self) -> Flag {
        *self.flags.outstanding() += 1;
        Flag {
            line: self.line,
            flags: Arc::clone(&self.flags),
        }
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        let mut outstanding = self.flags.outstanding();
        *outstanding -= 1;
        if *outstanding == 0 {
            self.flags.gone.notify_all();
        }
    }
}

/// How many flags of a thread there are.
#[derive(Debug, Default)]
struct Flags {
    outstanding: Mutex<usize>,
    gone: Condvar,
}

impl Flags {
    fn outstanding(&self) -> std::sync::MutexGuard<'_, usize> {
        // A count is right whatever its holder did.
        self.outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let outstanding = self.outstanding();
        drop(
            self.gone
                .wait_while(outstanding, |outstanding| *outstanding > 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

/// A thread's part in this. Its destructor runs before the thread's line is freed, even if `Attached` was leaked.
#[derive(Default)]
struct Thread {
    attached: Cell<bool>,
    flags: Arc<Flags>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        // No thread ends on a fiber: its code called `exit`, which runs the destructors of this thread while all threads go on. The line stays
        // until the process is gone, and nobody need let go of a flag before. Till then the fiber keeps the thread.
        if !local::fiber().is_null() {
            return local::set_no_preempt(local::no_preempt() + 1);
        }
        self.flags.wait();
    }
}

thread_local! {
    static THREAD: Thread = Thread::default();
}
