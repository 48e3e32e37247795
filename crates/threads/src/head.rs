//! The scheduler's record of a thread, beside its fiber's control, and lists of threads.
#![expect(unsafe_code, reason = "threads are addresses")]

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;

use headway_fiber::{Stack, Strand, StrandKind};
use headway_sync::atomic::AtomicUsize;
use headway_sync::cell::Cell as ModelledCell;
use headway_sync::park_token::ParkToken;

/// The threads of all runtimes.
static UTHREADS: StrandKind<UthreadHead> = StrandKind::new();

/// A thread of the user: its fiber, by address. The fiber's memory lives as long as the runtime and serves one thread after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uthread(pub(crate) Strand<UthreadHead>);

impl Uthread {
    /// A new fiber for threads.
    pub(crate) fn new(stack: Stack, head: UthreadHead) -> Uthread {
        Uthread(Strand::new(&UTHREADS, stack, head))
    }

    /// The running thread; `None` outside of a runtime's threads.
    #[inline(always)]
    pub(crate) fn current() -> Option<Uthread> {
        #[cfg(not(loom))]
        return Strand::current(&UTHREADS).map(Uthread);
        #[cfg(loom)]
        // SAFETY: the model put a thread there.
        return crate::model::current::word().map(|word| unsafe { Uthread::from_word(word) });
    }

    #[inline(always)]
    pub(crate) fn head<'a>(self) -> &'a UthreadHead {
        // SAFETY: strands are destroyed when no handle, list or ring has them.
        unsafe { self.0.head() }
    }

    #[inline(always)]
    pub(crate) fn links<'a>(self) -> &'a UthreadLinks {
        &self.head().links
    }

    #[inline(always)]
    pub(crate) fn word(self) -> usize {
        self.0.into_raw().as_ptr() as usize
    }

    /// # Safety
    /// The word is a thread's.
    #[inline(always)]
    pub(crate) unsafe fn from_word(word: usize) -> Uthread {
        // SAFETY: the caller's promise.
        unsafe {
            let word = NonNull::new_unchecked(word as *mut ());
            Uthread(Strand::from_raw(word))
        }
    }
}

/// The scheduler's part of a thread's memory.
pub(crate) struct UthreadHead {
    /// The kthread that runs it, as `kernel.rs` knows it.
    pub(crate) kthread: Cell<*const ()>,
    /// The waiter for its end: a word of [`join`].
    pub(crate) join: AtomicUsize,
    /// The runtime whose thread it is, as `kernel.rs` knows it.
    pub(crate) shared: *const (),
    /// Its place in the list in which it waits.
    pub(crate) links: UthreadLinks,
    /// The only kthread that may run it, plus 1; 0 for any. A thread that waits while it unwinds is bound, since `std` counts panics
    /// per kernel thread.
    pub(crate) bound: Cell<usize>,
    /// The address of the lock that it takes first when it resumes; null for none, or once the lock was handed to it.
    pub(crate) takes_lock: ModelledCell<*const ()>,
    /// Its token, made at the first use.
    pub(crate) parking: OnceCell<Arc<ParkCell>>,
    /// Its thread-local variables, by the address of their declaration.
    pub(crate) locals: RefCell<Vec<(usize, Box<dyn Any>)>>,
}

/// The words of [`UthreadHead::join`]. Any other is the waiting thread, or, with the lowest bit set, a thread of the operating system.
pub(crate) mod join {
    /// No thread waits yet.
    pub(crate) const NOBODY: usize = 0;
    /// The thread has ended, and its result waits for its handle.
    pub(crate) const DONE: usize = 2;
    /// The handle was dropped.
    pub(crate) const DETACHED: usize = 4;
    /// The runtime ended before the thread did.
    pub(crate) const ABANDONED: usize = 6;
    /// The fiber is free.
    pub(crate) const FREE: usize = 8;
    /// Set for a thread of the operating system.
    pub(crate) const FOREIGN: usize = 1;
}

impl UthreadHead {
    pub(crate) fn new(shared: *const ()) -> UthreadHead {
        UthreadHead {
            kthread: Cell::new(std::ptr::null()),
            join: AtomicUsize::new(join::FREE),
            shared,
            links: UthreadLinks::default(),
            bound: Cell::new(0),
            takes_lock: ModelledCell::new(std::ptr::null()),
            parking: OnceCell::new(),
            locals: RefCell::default(),
        }
    }
}

/// The token of a thread, for which [`park`] waits. A thread has at most one.
pub(crate) struct ParkCell {
    pub(crate) thread: Uthread,
    pub(crate) token: ParkToken,
}

// SAFETY: an unparker makes the thread ready only while it is parked, hence has not ended.
unsafe impl Send for ParkCell {}
// SAFETY: as above.
unsafe impl Sync for ParkCell {}

/// A thread's place in a list. The lock of the list guards it.
#[derive(Debug, Default)]
pub(crate) struct UthreadLinks {
    before: Cell<Option<Uthread>>,
    after: Cell<Option<Uthread>>,
    listed: Cell<bool>,
}

/// A list of waiting threads.
#[derive(Debug, Default)]
pub(crate) struct UthreadList {
    first: Option<Uthread>,
    last: Option<Uthread>,
}

// SAFETY: the list's owner may resume its threads, in any thread.
unsafe impl Send for UthreadList {}

impl UthreadList {
    /// Puts a thread at the end. It is in no list.
    pub(crate) fn push(&mut self, thread: Uthread) {
        let links = thread.links();
        links.before.set(self.last);
        links.after.set(None);
        links.listed.set(true);
        match self.last {
            Some(last) => last.links().after.set(Some(thread)),
            None => self.first = Some(thread),
        }
        self.last = Some(thread);
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<Uthread> {
        let first = self.first?;
        let links = first.links();
        self.first = links.after.get();
        match self.first {
            Some(after) => after.links().before.set(None),
            None => self.last = None,
        }
        links.listed.set(false);
        Some(first)
    }

    /// Removes a thread, if the list still has it. The thread is in no other list.
    pub(crate) fn remove(&mut self, thread: Uthread) -> bool {
        let listed = thread.links().listed.get();
        if listed {
            self.unlink(thread);
        }
        listed
    }

    fn unlink(&mut self, thread: Uthread) {
        let links = thread.links();
        let (before, after) = (links.before.take(), links.after.take());
        match before {
            Some(before) => before.links().after.set(after),
            None => self.first = after,
        }
        match after {
            Some(after) => after.links().before.set(before),
            None => self.last = before,
        }
        links.listed.set(false);
    }
}
