//! The costs of an interruption's parts on this machine, each measured by itself. For simulations.
#![expect(unsafe_code, reason = "resumes fibers")]

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headway_machine::Clock;

use crate::attached::Attached;
use crate::checkpoint::checkpoint;
use crate::fiber::{Fiber, Turn};
use crate::mechanism::{ByFlag, Preempter};
use crate::stack::{Stack, Stacks};
use crate::yielding::yield_now;

/// The number of measurements, of which the median counts.
const ROUNDS: usize = 7;
/// The number of operations timed together, since one takes less than a reading of the clock.
const TOGETHER: u64 = 100_000;
/// Requests to yield, each timed by itself.
const ASKS: u64 = 500;
/// The time that a request runs before it is asked to yield, ns. By then its probes have the flag in their cache.
const BEFORE_ASK_NS: u64 = 2_000;
const STACK_BYTES: usize = 64 << 10;

/// The cost of resuming a fiber that suspends itself, ns: a thread's cost for each turn of a request.
///
/// # Errors
/// There is no memory for a stack.
pub fn switch_ns() -> io::Result<f64> {
    let stack = stack()?;
    let mut fiber = Fiber::new(stack, |turns: &mut u64| {
        (0..*turns).for_each(|_| yield_now());
    });
    fiber.run(ROUNDS as u64 * TOGETHER + 1, 0);
    let time = median((0..ROUNDS).map(|_| each(|| turn(&mut fiber))));
    turn(&mut fiber);
    Ok(time)
}

/// The cost of a probe without a request, ns. With `self_timed` the probe reads the clock at times, otherwise it reads a flag.
#[must_use]
pub fn probe_ns(self_timed: bool) -> f64 {
    let attached = Attached::new();
    attached.self_timed(self_timed);
    let rounds = (0..ROUNDS).map(|_| {
        let bare_ns = each(|| {
            black_box(());
        });
        let probed_ns = each(|| {
            checkpoint();
            black_box(());
        });
        (probed_ns - bare_ns).max(0.0)
    });
    median(rounds)
}

/// The time from another thread's raising of a request's flag until the request has yielded, ns.
///
/// # Errors
/// There is no memory for a stack.
///
/// # Panics
/// When no thread can be started.
pub fn notification_ns() -> io::Result<f64> {
    let stack = stack()?;
    let attached = Attached::new();
    let asker = ByFlag::new(&attached).asker();
    let asker = asker.expect("another thread asks by a flag");
    let (clock, runs) = (Clock::global(), AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut fiber = Fiber::new(stack, |stop: &mut Arc<AtomicBool>| {
        while !stop.load(Ordering::Relaxed) {
            checkpoint();
        }
    });
    let mut times_ns = Vec::with_capacity(ASKS as usize);
    std::thread::scope(|scope| {
        let runs = &runs;
        scope.spawn(move || {
            for epoch in 1..=ASKS {
                while runs.load(Ordering::Acquire) != epoch {
                    spin_loop();
                }
                let ask_ns = clock.now_ns() + BEFORE_ASK_NS;
                while clock.now_ns() < ask_ns {
                    spin_loop();
                }
                asker.ask_with(epoch, clock.now_ns());
            }
        });
        for epoch in 1..=ASKS {
            attached.begin(epoch);
            runs.store(epoch, Ordering::Release);
            if epoch == 1 {
                fiber.run(Arc::clone(&stop), 0);
            } else {
                turn(&mut fiber);
            }
            let now_ns = clock.now_ns();
            times_ns.push(now_ns.saturating_sub(attached.granted_message()) as f64);
        }
    });
    stop.store(true, Ordering::Relaxed);
    turn(&mut fiber);
    Ok(median(times_ns.into_iter()))
}

fn stack() -> io::Result<Stack> {
    Stacks::new(STACK_BYTES, 1)?.take()
}

/// Runs one turn of a fiber that has begun.
fn turn<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

/// The time of each of many calls, ns.
fn each<R>(mut call: impl FnMut() -> R) -> f64 {
    let clock = Clock::global();
    let start_ns = clock.now_ns();
    for _ in 0..TOGETHER {
        black_box(call());
    }
    (clock.now_ns() - start_ns) as f64 / TOGETHER as f64
}

fn median(times_ns: impl Iterator<Item = f64>) -> f64 {
    let mut times_ns: Vec<f64> = times_ns.collect();
    times_ns.sort_by(f64::total_cmp);
    times_ns[times_ns.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds that hold under any load of the machine. They show that the measurements time the right thing.
    #[test]
    fn parts_are_measured() {
        let switch_ns = switch_ns().unwrap();
        assert!(switch_ns > 0.1, "{switch_ns}");
        assert!(probe_ns(false) >= 0.0 && probe_ns(true) >= 0.0);
        let notification_ns = notification_ns().unwrap();
        assert!(notification_ns > 0.0, "{notification_ns}");
    }
}
