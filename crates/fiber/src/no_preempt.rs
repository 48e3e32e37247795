//! Sections in which a fiber is not interrupted.
#![expect(
    unsafe_code,
    reason = "counts in a thread-local word by one instruction"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::asm;
use std::marker::PhantomData;

use crate::abi::words::{DEFERRED_OFFSET, NO_PREEMPT_OFFSET};
use crate::local::{no_preempt, self_offset, set_deferred};

// The end of a section is the one place where code that suspends a fiber is called by code that it is built on: suspending opens sections
// itself. So this file knows only the symbols of the contract ([`abi`](crate::abi)), as C code does. A direct call to a symbol costs what it
// did; a pointer to the function would cost a word in the thread's line, and a check before the first thread attaches.
unsafe extern "C-unwind" {
    safe fn __headway_deferred();
    safe fn __headway_deferred_in_library();
}

/// A no-preempt section. The fiber that made it does not yield while it lives. A fiber that was asked to yield meanwhile does so when it drops
/// its last section.
///
/// Outside a fiber it has no effect. A leaked section forbids preemption until the thread's next [assignment](crate::Attached::begin).
///
/// A section belongs to the thread that counts it, so it cannot be sent to another:
///
/// ```compile_fail,E0277
/// fn may_go_on_in_another_thread(_: impl Send) {}
/// may_go_on_in_another_thread(headway_fiber::NoPreempt::enter());
/// ```
#[derive(Debug)]
pub struct NoPreempt {
    /// Belongs to the thread that counts it.
    bound: PhantomData<*mut ()>,
}

impl NoPreempt {
    /// Opens a section.
    #[inline(always)]
    #[must_use = "the section ends when the guard is dropped"]
    pub fn enter() -> NoPreempt {
        open();
        NoPreempt { bound: PhantomData }
    }
}

impl Drop for NoPreempt {
    #[inline(always)]
    fn drop(&mut self) {
        close();
    }
}

/// Forbids preemption of the calling job until the end of its assignment: a section without a guard. For servers whose requests state where
/// they [may be interrupted](unshield) (SYNERGY, section 5.1).
#[inline(always)]
pub fn shield() {
    open();
}

/// Ends a [`shield`]. Yields if the job was asked to meanwhile and no other section is open. Call it once for each `shield`: a further call
/// forbids preemption until the end of the assignment.
#[inline(always)]
pub fn unshield() {
    debug_assert!(no_preempt() > 0, "nothing to take back");
    close();
}

/// One instruction, so that a signal cannot split it.
#[inline(always)]
fn open() {
    // SAFETY: counts in this thread's own line. The compiler keeps accesses to memory on their side of it.
    unsafe {
        asm!("inc dword ptr fs:[{0} + {1}]", in(reg) self_offset(), const NO_PREEMPT_OFFSET,
            options(nostack));
    }
}

#[inline(always)]
fn close() {
    // SAFETY: as in `open`; the cold path is an ordinary call.
    unsafe {
        asm!("dec dword ptr fs:[{0} + {2}]", "jnz 2f", "cmp dword ptr fs:[{0} + {3}], 0", "jne {1}", "2:",
            in(reg) self_offset(), label { __headway_deferred() },
            const NO_PREEMPT_OFFSET, const DEFERRED_OFFSET, options(nostack));
    }
}

/// As `close`, for sections whose caller may not be ready to yield.
#[inline(always)]
fn close_in_library() {
    // SAFETY: as in `close`.
    unsafe {
        asm!("dec dword ptr fs:[{0} + {2}]", "jnz 2f", "cmp dword ptr fs:[{0} + {3}], 0", "jne {1}", "2:",
            in(reg) self_offset(), label { __headway_deferred_in_library() },
            const NO_PREEMPT_OFFSET, const DEFERRED_OFFSET, options(nostack));
    }
}

/// Calls `call` in a section. For code that finds an address of the thread's and uses it: a signal in between could move the fiber to another
/// thread.
#[inline(always)]
pub(crate) fn in_one_thread<T>(call: impl FnOnce() -> T) -> T {
    let _section = NoPreempt::enter();
    call()
}

/// As [`in_one_thread`], in a fiber that leaves next, and so drops a request that comes meanwhile.
#[inline(always)]
pub(crate) fn in_one_thread_before_leaving<T>(call: impl FnOnce() -> T) -> T {
    open();
    let result = call();
    // SAFETY: as in `open`.
    unsafe {
        asm!("dec dword ptr fs:[{0} + {1}]", in(reg) self_offset(), const NO_PREEMPT_OFFSET,
            options(nostack));
    }
    set_deferred(0);
    result
}

/// An allocator with each call in a no-preempt section: the `#[global_allocator]` of programs that preempt by [signal](crate::BySignal), or
/// whose allocator is compiled with probes. An allocator holds locks, and the next fiber allocates too.
///
/// ```
/// use std::alloc::System;
/// use headway_fiber::NoPreemptAlloc;
///
/// #[global_allocator]
/// static ALLOCATOR: NoPreemptAlloc<System> = NoPreemptAlloc(System);
/// # fn main() { assert_eq!(vec![1, 2].len(), 2) }
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct NoPreemptAlloc<A>(
    /// The allocator that does the work.
    pub A,
);

#[inline(always)]
fn in_library<T>(call: impl FnOnce() -> T) -> T {
    open();
    let result = call(); // An allocator does not unwind.
    close_in_library();
    result
}

// SAFETY: all calls go to the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for NoPreemptAlloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the inner allocator's conditions.
        in_library(|| unsafe { self.0.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        in_library(|| unsafe { self.0.dealloc(place, layout) });
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        in_library(|| unsafe { self.0.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        in_library(|| unsafe { self.0.realloc(place, layout, bytes) })
    }
}
