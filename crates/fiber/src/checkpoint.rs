//! A probe placed by hand.
#![expect(unsafe_code, reason = "the probe is assembly")]

use std::arch::asm;

use crate::abi::{__headway_preempted, ASKED_OFFSET};
use crate::local::preempt_offset;

/// Yields if this thread was asked to: a load and a branch that is not taken.
///
/// For code that the compiler pass does not see. Put it into loops, often enough that a quantum's end is noticed in time.
#[inline(always)]
pub fn checkpoint() {
    // SAFETY: the comparison reads this thread's line, which no Rust code knows as memory; the cold path is an ordinary call, and
    // returns with every register as it was.
    unsafe {
        asm!("cmp qword ptr fs:[{0} + {2}], 0", "jne {1}", in(reg) preempt_offset(),
            label {
                // SAFETY: whoever runs this code has the stack for it.
                unsafe { __headway_preempted() }
            },
            const ASKED_OFFSET,
            options(nostack, nomem));
    }
}
