//! What a running fiber's code must find without knowing its type: the head of the memory at the top of its stack.

use std::cell::Cell;

use corosensei::Yielder;

use crate::sanitizer::Shadow;

/// What a fiber tells who runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The job is done; the fiber waits for the next.
    Finished,
    /// The job waits to go on.
    Yielded,
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

/// The part of a fiber that probes see.
#[repr(C)]
pub(crate) struct Control {
    /// The way out, set when the fiber first runs.
    pub(crate) yielder: Cell<*const Yielder<(), Event>>,
    /// The usable stack: from above the guard pages up to this structure.
    pub(crate) stack_limit: usize,
    pub(crate) stack_base: usize,
    /// How much of the lowest addresses is guard.
    pub(crate) guard_base: usize,
    /// The class of the current job, for reports.
    pub(crate) label: Cell<u64>,
    pub(crate) state: Cell<State>,
    /// How often it was suspended in a job.
    pub(crate) suspensions: Cell<u64>,
    /// It was suspended by a probe or a signal rather than by a call.
    pub(crate) preempted: Cell<bool>,
    /// It was suspended in a signal handler, and has not left it yet.
    pub(crate) in_handler: Cell<bool>,
    /// What a sanitizer knows of it.
    pub(crate) shadow: Shadow,
    /// The body, once it has run, in its frame at the bottom of the stack; and how to drop it.
    pub(crate) body: Cell<*mut ()>,
    pub(crate) drop_body: unsafe fn(*mut ()),
}

impl Control {
    /// Whether a stack pointer is inside this fiber's stack.
    #[inline]
    pub(crate) fn holds(&self, stack_pointer: usize) -> bool {
        stack_pointer.wrapping_sub(self.stack_limit) <= self.stack_base - self.stack_limit
    }

    /// Whether an address lies in the guard below the stack.
    pub(crate) fn guards(&self, address: usize) -> bool {
        (self.guard_base..self.stack_limit).contains(&address)
    }

    /// How much stack there is.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_base - self.stack_limit
    }
}
