//! What is a worker's, whichever thread's state its fiber owns.
//!
//! A fiber that owns a [thread's state](crate::donor) has thread-local variables of its own, with a line to flag among them. It finds its worker by one word, which is set
//! each time that it is resumed. What its probes need of the worker once they yield lies here: a turn lends none of it.

use std::mem::offset_of;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use headway_sync::Guarded;

use crate::timed::RenewSlice;

/// A worker, as others see it who ask it to yield, and as its fibers do.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PresentLine {
    /// The line that the probes of the present assignment read.
    line: AtomicPtr<AtomicU64>,
    own: WorkerWords,
}

/// Words that only the worker writes and its fibers read, in one thread: atomic for the type's sake. A line of their own, since others read the word before in each request.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct WorkerWords {
    /// What the worker will read once a probe has yielded.
    next_read: AtomicPtr<()>,
    /// What it will write to then.
    next_writes: [AtomicPtr<()>; 2],
    /// The [function](RenewSlice) that may renew a slice on the fiber's stack, or null, and its argument.
    renew: AtomicPtr<()>,
    renew_data: AtomicPtr<()>,
    /// Whether the worker answers sections that ask whether they must yield.
    answers: AtomicBool,
}

/// Where a stub finds the address that the worker will read.
pub(crate) const NEXT_READ_AT: usize = offset_of!(PresentLine, own.next_read);

/// Those of threads that have ended. None is freed: a signal may take a fiber from its worker after the fiber has found the worker and before it reads there.
static ENDED: LazyLock<Guarded<Vec<&'static PresentLine>>> = LazyLock::new(Guarded::default);

impl PresentLine {
    /// Of a thread that runs no fiber, and whose own line this is; for as long as it is not [given back](Self::give_back).
    pub(crate) fn of_thread(line: *const AtomicU64) -> &'static PresentLine {
        let ended = ENDED.lock().pop();
        let present = ended.unwrap_or_else(|| {
            Box::leak(Box::new(PresentLine {
                line: AtomicPtr::default(),
                own: WorkerWords::default(),
            }))
        });
        present.set_line(line);
        present
    }

    /// Called when the thread has ended: another may have it.
    pub(crate) fn give_back(&'static self) {
        self.set_next_read(ptr::null());
        self.set_next_writes([ptr::null(); 2]);
        self.set_renewal(None, ptr::null_mut());
        self.set_answers(false);
        ENDED.lock().push(self);
    }

    /// Sets what the worker will read once a probe has yielded.
    #[inline]
    pub(crate) fn set_next_read(&self, address: *const ()) {
        let word = &self.own.next_read;
        word.store(address.cast_mut(), Ordering::Relaxed);
    }

    /// Sets what the worker will write to once a probe has yielded.
    #[inline]
    pub(crate) fn set_next_writes(&self, addresses: [*const (); 2]) {
        for (word, address) in self.own.next_writes.iter().zip(addresses) {
            word.store(address.cast_mut(), Ordering::Relaxed);
        }
    }

    /// See [`set_next_writes`](Self::set_next_writes).
    #[inline(always)]
    pub(crate) fn next_writes(&self) -> [*const (); 2] {
        let words = &self.own.next_writes;
        [0, 1].map(|at| words[at].load(Ordering::Relaxed).cast_const())
    }

    /// Sets the function that may renew a slice, and its argument.
    #[inline]
    pub(crate) fn set_renewal(&self, renew: Option<RenewSlice>, data: *mut ()) {
        let renew = renew.map_or(ptr::null_mut(), |renew| renew as *mut ());
        self.own.renew.store(renew, Ordering::Relaxed);
        self.own.renew_data.store(data, Ordering::Relaxed);
    }

    /// See [`set_renewal`](Self::set_renewal): the function by its address, null for none.
    #[inline(always)]
    pub(crate) fn renewal(&self) -> (*const (), *mut ()) {
        let renew = self.own.renew.load(Ordering::Relaxed);
        (renew, self.own.renew_data.load(Ordering::Relaxed))
    }

    /// Sets whether the worker answers sections that ask whether they must yield.
    pub(crate) fn set_answers(&self, on: bool) {
        self.own.answers.store(on, Ordering::Relaxed);
    }

    /// See [`set_answers`](Self::set_answers).
    #[inline]
    pub(crate) fn answers(&self) -> bool {
        self.own.answers.load(Ordering::Relaxed)
    }

    /// The line to which whoever asks writes. It stays valid for as long as there are [flags](crate::YieldFlag).
    #[inline(always)]
    pub(crate) fn line(&self) -> *const AtomicU64 {
        self.line.load(Ordering::Acquire)
    }

    /// From now on that is this line. Called before the assignment's epoch is published: so who knows the epoch asks there.
    #[inline(always)]
    pub(crate) fn set_line(&self, line: *const AtomicU64) {
        if self.line.load(Ordering::Relaxed).cast_const() != line {
            self.line.store(line.cast_mut(), Ordering::Release);
        }
    }
}
