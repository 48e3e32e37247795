//! What a running fiber's code must find without knowing its type: the head of the memory at the top of its stack.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use crate::sanitizer::Shadow;
use crate::stack::Stack;

/// What a fiber tells who runs it: a register's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Event {
    /// The job is done; the fiber waits for the next.
    Finished = 0,
    /// The job waits to go on.
    Yielded = 1,
    /// The body panicked.
    Panicked = 2,
}

/// Where a fiber is between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has no job.
    Idle,
    /// Its job has begun and not ended.
    Suspended,
    /// A panic ended its body.
    Spent,
}

/// The part of a fiber that probes see. The first line is all that a switch touches.
#[repr(C)]
pub(crate) struct Control {
    /// The fiber's own, while it does not run.
    pub(crate) stack_pointer: Cell<usize>,
    /// That of whoever entered it, while it runs.
    pub(crate) resumer: Cell<usize>,
    /// The usable stack: from above the guard pages up to the body, which lies there.
    pub(crate) stack_limit: usize,
    pub(crate) stack_base: usize,
    /// Runs a job on the fiber's stack.
    pub(crate) run: unsafe extern "C" fn(*mut Control) -> Event,
    /// How often it was suspended in a job.
    pub(crate) suspensions: Cell<u64>,
    /// The class of the current job, for reports.
    pub(crate) label: Cell<u64>,
    pub(crate) state: Cell<State>,
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

impl Control {
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
