//! What a running fiber's code must find without knowing its type: the head of the memory at the top of its stack.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use crate::sanitizer::Shadow;
use crate::stack::Stack;

/// Where a fiber is between two turns, in one word: its stack pointer, where its job was suspended; else one of these. What runs in it hands the
/// word over in a register when it leaves.
pub(crate) mod rest {
    /// It has no job.
    pub(crate) const IDLE: usize = 0;
    /// A panic ended its body.
    pub(crate) const SPENT: usize = 1;
}

/// How a job ended: what lies at [`rest`] from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Ended {
    /// The body returned.
    Finished = rest::IDLE,
    /// It panicked.
    Panicked = rest::SPENT,
}

/// The part of a fiber that probes see. The first line is all that a switch touches.
#[repr(C)]
pub(crate) struct FiberControl {
    /// The fiber's own or a word of [`rest`], while it does not run.
    pub(crate) stack_pointer: Cell<usize>,
    /// That of whoever entered it, while it runs.
    pub(crate) resumer: Cell<usize>,
    /// The usable stack: from above the guard pages up to the body, which lies there.
    pub(crate) stack_limit: usize,
    pub(crate) stack_base: usize,
    /// Runs a job on the fiber's stack.
    pub(crate) run: unsafe extern "C" fn(*mut FiberControl) -> Ended,
    /// How often it was suspended in a job.
    pub(crate) suspensions: Cell<u64>,
    /// The class of the current job, for reports.
    pub(crate) label: Cell<u64>,
    /// It was suspended by a probe or a signal rather than by a call.
    pub(crate) preempted: Cell<bool>,
    /// It was suspended in a signal handler, and has not left it yet.
    pub(crate) in_handler: Cell<bool>,
    /// What a sanitizer knows of it.
    pub(crate) shadow: Shadow,
    /// Drops the body.
    pub(crate) drop_body: unsafe fn(*mut ()),
    /// What all this lies on.
    pub(crate) stack: ManuallyDrop<Stack>,
}

impl FiberControl {
    /// Whether its job was suspended.
    #[inline(always)]
    pub(crate) fn is_suspended(&self) -> bool {
        self.stack_pointer.get() > rest::SPENT
    }

    /// Where the body lies.
    #[inline]
    pub(crate) fn body(&self) -> *mut () {
        self.stack_base as *mut ()
    }

    /// Whether a stack pointer is inside this fiber's stack.
    #[inline]
    pub(crate) fn holds(&self, stack_pointer: usize) -> bool {
        stack_pointer.wrapping_sub(self.stack_limit) <= self.stack_base - self.stack_limit
    }

    /// Whether an address lies in the guard below the stack.
    pub(crate) fn guards(&self, address: usize) -> bool {
        (self.stack.guard()..self.stack_limit).contains(&address)
    }

    /// How much stack there is.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_base - self.stack_limit
    }
}
