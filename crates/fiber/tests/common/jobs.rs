//! Fibers with a thread's state that run closures.

use std::thread;
use std::time::{Duration, Instant};

use headway_fiber::{SendFiber, Stacks, Turn};

pub(crate) const STACK_BYTES: usize = 256 << 10;

/// A turn at home takes no longer.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A fiber that runs closures and owns the state of a donor.
pub(crate) fn fiber(stacks: &Stacks) -> SendFiber<Option<Job>> {
    let stack = stacks.take().expect("a thread can be made");
    let made = SendFiber::owning_thread_state(stack, |job: &mut Option<Job>| {
        job.take().expect("there is a job")();
    });
    made.unwrap_or_else(|_| unreachable!("the stack is a donor's"))
}

/// Runs a job that goes home once, until it is done.
pub(crate) fn runs_over_home(fiber: &mut SendFiber<Option<Job>>, job: Job) {
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    assert!(fiber.take_home_wish());
    fiber.run_at_home();
    let begun = Instant::now();
    while fiber.turn_at_home().is_none() {
        assert!(begun.elapsed() < LIMIT, "it comes home");
        thread::yield_now();
    }
    assert!(matches!(fiber.resume(), Turn::Finished(_)));
}
