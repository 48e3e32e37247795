//! A fiber's control: the part of its memory that does not depend on the type of its job, at the top of its stack.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use crate::held::HeldNote;
use crate::sanitizer::Shadow;
use crate::stack::Stack;

/// The state of a fiber between two turns, in one word: where a suspended job left its stack, or one of these values. The fiber passes the
/// word in a register when it leaves.
pub(crate) mod rest {
    /// The fiber has no job.
    pub(crate) const IDLE: usize = 0;
    /// A panic ended its body.
    pub(crate) const SPENT: usize = 1;
    /// A [strand](crate::Strand) runs, or has not left its stack yet.
    pub(crate) const RUNNING: usize = 2;
}

/// The end of a job. The values are those of [`rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Ended {
    /// The body returned.
    Finished = rest::IDLE,
    /// The body panicked.
    Panicked = rest::SPENT,
}

/// What a job has said of itself by [`say_long`](crate::say_long).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Said {
    /// Nothing.
    Nothing,
    /// That it is long.
    Long,
    /// That it is long, and it left its stack to say so.
    Leaves,
}

/// The question with which a section left its stack: whether its fiber [must yield](crate::NoPreempt::must_yield).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SectionQuestion {
    /// None, or it was answered that the fiber must.
    None,
    /// Asked.
    Asked,
    /// Its slice was renewed.
    Renewed,
}

/// The part of a fiber that probes use. A switch touches only the first cache line.
#[repr(C)]
pub(crate) struct FiberControl {
    /// While the fiber does not run: where on its stack it saved its registers, or a word of [`rest`].
    pub(crate) left_at: Cell<usize>,
    /// While the fiber runs: where the code that entered it saved its registers.
    pub(crate) resumer: Cell<usize>,
    /// The usable stack: from the end of the guard up to the body.
    pub(crate) stack_limit: usize,
    pub(crate) stack_base: usize,
    /// The function that runs a job on the fiber's stack.
    pub(crate) run: unsafe extern "C" fn(*mut FiberControl) -> Ended,
    /// The number of its suspensions so far, in all jobs.
    pub(crate) suspensions: Cell<u64>,
    /// The [kind](crate::StrandKind) of a strand, by its address; null for other fibers.
    pub(crate) kind: *const (),
    /// Whether a probe or a signal suspended it, rather than a call.
    pub(crate) preempted: Cell<bool>,
    /// Of a strand: it left by `yield_now`, and counts as `preempted` until it is resumed.
    pub(crate) yielded: Cell<bool>,
    /// Whether it runs or is suspended in the signal handler.
    pub(crate) in_handler: Cell<bool>,
    /// Whether a request to yield met a no-preempt section in this turn.
    pub(crate) is_held: Cell<bool>,
    /// What the current job has said of itself.
    pub(crate) said: Cell<Said>,
    /// What it asks its worker in a section.
    pub(crate) question: Cell<SectionQuestion>,
    /// Whether it owns what a thread has: it is on a [donor](crate::donor)'s stack.
    pub(crate) owns_thread_state: bool,
    /// Whether it is about to jump back, for which it may hold words of the code that entered it: a signal that suspended it there would have it jump to that code
    /// again. Cleared where it is entered.
    pub(crate) is_leaving: Cell<bool>,
    /// Whether its job has a signal mask of its own: see [`signal_mask`](crate::signal_mask).
    pub(crate) has_own_mask: Cell<bool>,
    /// With a thread's state of its own, the base of its thread-local variables.
    pub(crate) base: usize,
    /// While it runs: the base of the code that entered it.
    pub(crate) resumer_base: Cell<usize>,
    /// Whether it left so that its own thread goes on with it.
    pub(crate) wants_home: Cell<bool>,
    /// Where its thread saved its registers when it parked: the callers of the fiber's first frame.
    pub(crate) home: Cell<usize>,
    /// Where a debugger finds its frames: [saved](crate::context::Saved) there, or in the frame in which its donor is parked.
    pub(crate) shown: Cell<usize>,
    /// The number of slices that were renewed on its stack so far, in all jobs.
    pub(crate) renewals: Cell<u64>,
    /// That mask, while it does not run.
    pub(crate) own_mask: Cell<u64>,
    /// While it runs with that mask: its thread's.
    pub(crate) thread_mask: Cell<u64>,
    /// The class of the current job, for reports.
    pub(crate) label: Cell<u64>,
    /// The sanitizer's record of it.
    pub(crate) shadow: Shadow,
    /// When that request came, and which section delayed it.
    pub(crate) held: HeldNote,
    /// The function that drops the body.
    pub(crate) drop_body: unsafe fn(*mut ()),
    /// The stack that holds all this.
    pub(crate) stack: ManuallyDrop<Stack>,
}

impl FiberControl {
    /// A strand that had [`yielded`](Self::yielded) is resumed.
    #[inline(always)]
    pub(crate) fn forget_yield(&self) {
        if self.yielded.replace(false) {
            self.preempted.set(false);
        }
    }

    /// Whether its job was suspended.
    #[inline(always)]
    pub(crate) fn is_suspended(&self) -> bool {
        self.left_at.get() > rest::RUNNING
    }

    /// The address of the body.
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

    /// The usable bytes of the stack.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_base - self.stack_limit
    }
}
