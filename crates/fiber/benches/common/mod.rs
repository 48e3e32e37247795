//! What the benches of fibers measure alike.

use std::hint::black_box;

use headway_fiber::{Attached, Fiber, Stacks, Turn, checkpoint, yield_now};
use headway_machine::Clock;

/// The time of each of `count` calls.
///
/// The loop has the call among its own code, as a scheduler's has the turns of its fibers: a processor foretells returns from the calls before, and would take those on the
/// two sides of a switch for one another's.
#[inline(always)]
pub(crate) fn each(clock: &Clock, count: u64, mut call: impl FnMut(u64)) -> f64 {
    let start_ns = clock.now_ns();
    for number in 0..count {
        call(number);
    }
    (clock.now_ns() - start_ns) as f64 / count as f64
}

pub(crate) fn stacks() -> Stacks {
    Stacks::new(64 << 10, 16).expect("there is memory for stacks")
}

/// Stacks with a thread's state.
pub(crate) fn donors() -> Stacks {
    Stacks::of_donors(64 << 10, 2).expect("threads can be made")
}

/// Resumes the fiber. No bench calls it in a thread-local variable's destructor, where [`Fiber::resume`] is unsound.
pub(crate) fn resume<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

/// A fiber on such a stack is resumed so many times, and yields.
pub(crate) fn switch_of(clock: &Clock, stacks: &Stacks, turns: u64) -> f64 {
    let mut fiber = Fiber::new(stacks.take().expect("a stack"), |turns: &mut u64| {
        for _ in 0..*turns {
            yield_now();
        }
    });
    fiber.run(turns, 0);
    let time = each(clock, turns - 1, |_| {
        assert!(matches!(resume(&mut fiber), Turn::Yielded));
    });
    resume(&mut fiber);
    time
}

/// A fiber on such a stack is asked to yield, does at a probe, and is resumed: so many times.
pub(crate) fn preemption_of(clock: &Clock, stacks: &Stacks, turns: u64) -> f64 {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks.take().expect("a stack"), |turns: &mut u64| {
        for _ in 0..*turns {
            checkpoint();
        }
    });
    attached.begin(1);
    flag.raise(1);
    fiber.run(turns, 0);
    let time = each(clock, turns - 1, |turn| {
        attached.begin(turn + 2);
        flag.raise(turn + 2);
        black_box(resume(&mut fiber));
    });
    resume(&mut fiber);
    time
}
