//! Fibers with a thread's state that run closures.

use headway_fiber::{SendFiber, Stacks};

pub(crate) const STACK_BYTES: usize = 256 << 10;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A fiber that runs closures and owns the state of a donor.
pub(crate) fn fiber(stacks: &Stacks) -> SendFiber<Option<Job>> {
    let stack = stacks.take().expect("a thread can be made");
    let made = SendFiber::owning_thread_state(stack, |job: &mut Option<Job>| {
        job.take().expect("there is a job")();
    });
    made.unwrap_or_else(|_| unreachable!("the stack is a donor's"))
}
