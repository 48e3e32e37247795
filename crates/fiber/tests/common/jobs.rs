//! Fibers that run closures, and turns of them at home.

use std::thread;
use std::time::{Duration, Instant};

use headway_fiber::{Fiber, SendFiber, Stacks, Turn};

pub(crate) const STACK_BYTES: usize = 256 << 10;

/// No test waits longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A fiber that runs closures. It owns the state of a donor if the stacks are those of donors.
pub(crate) fn fiber(stacks: &Stacks) -> SendFiber<Option<Job>> {
    let stack = stacks.take().expect("a thread can be made");
    let body = |job: &mut Option<Job>| job.take().expect("there is a job")();
    match SendFiber::owning_thread_state(stack, body) {
        Ok(fiber) => fiber,
        // SAFETY: the jobs of these tests keep nothing of their threads.
        Err(plain) => unsafe { Fiber::new(plain, body).migratable() },
    }
}

/// Runs the fiber at home, until its next turn there.
pub(crate) fn turn_at_home(fiber: &mut SendFiber<Option<Job>>) -> Turn<Option<Job>> {
    fiber.run_at_home();
    let begun = Instant::now();
    loop {
        if let Some(turn) = fiber.turn_at_home() {
            return turn;
        }
        assert!(begun.elapsed() < LIMIT, "it comes home");
        thread::yield_now();
    }
}

/// Runs a job that goes home once, until it is done.
pub(crate) fn runs_over_home(fiber: &mut SendFiber<Option<Job>>, job: Job) {
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    assert!(fiber.take_home_wish());
    let _turn = turn_at_home(fiber);
    assert!(matches!(fiber.resume(), Turn::Finished(_)));
}
