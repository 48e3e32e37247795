//! Sections in which a fiber is not interrupted.
#![expect(
    unsafe_code,
    reason = "counts in a thread-local word by one instruction"
)]

use std::arch::asm;
use std::marker::PhantomData;

use crate::abi::{DEFERRED_OFFSET, NO_PREEMPT_OFFSET};
use crate::local::self_offset;
use crate::slow::__headway_deferred;

/// While it lives, the fiber that made it does not yield; when the last one is dropped, it does if it was asked to meanwhile.
///
/// Outside a fiber it has no effect. One that is leaked forbids preemption until the thread's next
/// [assignment](crate::Attached::begin).
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
