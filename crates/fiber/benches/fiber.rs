//! The costs of fibers: switches, preemptions, probes, guards; beside a coroutine library and a bare cache line.
//!
//! Figures are medians of interleaved rounds: on a shared machine, only those of one run can be compared. Arguments are parts of the
//! names of the rows to measure.
#![expect(unsafe_code, reason = "calls allocators")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{donors, each, preemption_of, resume, stacks, switch_of};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use headway_fiber::{
    Attached, Fiber, LeftStrand, NoPreempt, NoPreemptAlloc, StackCache, Stacks, Strand, StrandKind,
    Turn, checkpoint, suspensions, yield_now,
};
use headway_machine::thread::pin_current;
use headway_machine::{Clock, Topology};

/// Repetitions within a round.
const MANY: u64 = 500_000;

/// Rounds of each measurement.
const ROUNDS: usize = 11;

/// One round: nanoseconds each.
type Measure = fn(&Clock) -> f64;

const ROWS: [(&str, Measure); 27] = [
    ("resume + suspend, coroutine library", library_switch),
    ("resume + suspend, fiber", switch),
    ("resume + suspend, with a thread's state", |clock| {
        switch_of(clock, &donors(), MANY)
    }),
    ("one fiber suspended, another resumed, by a loop", by_loop),
    ("the same, with a thread's state", |clock| {
        by_loop_of(clock, &donors())
    }),
    ("one strand switches to another, directly", directly),
    ("spawn, run, finish, coroutine library", library_spawn),
    ("spawn, run, finish on a pooled stack", spawn),
    ("run, finish on a fiber that is there", rerun),
    ("the same, with a thread's state ", |clock| {
        rerun_of(clock, &donors())
    }),
    ("preemption: asked, yielded, resumed", preemption),
    ("preemption, with a thread's state", |clock| {
        preemption_of(clock, &donors(), MANY)
    }),
    ("a donor made and ended", made),
    ("a loop", bare_loop),
    ("a loop with a checkpoint", checked_loop),
    ("a loop with a checkpoint, self-timed", timed_loop),
    ("the same in slices of 20 µs", |clock| {
        sliced_loop(clock, 20_000, false)
    }),
    ("the same in slices of 1 ms", |clock| {
        sliced_loop(clock, 1_000_000, false)
    }),
    ("by a timer where it is worth it, 20 µs", |clock| {
        sliced_loop(clock, 20_000, true)
    }),
    ("by a timer where it is worth it, 100 µs", |clock| {
        sliced_loop(clock, 100_000, true)
    }),
    ("by a timer where it is worth it, 250 µs", |clock| {
        sliced_loop(clock, 250_000, true)
    }),
    ("by a timer where it is worth it, 1 ms", |clock| {
        sliced_loop(clock, 1_000_000, true)
    }),
    ("alloc + free, system allocator", plain_alloc),
    ("alloc + free, guarded", guarded_alloc),
    ("a cache line, one way", line),
    (
        "flag raised in another thread to the switch back",
        |clock| notice(clock, stacks),
    ),
    ("flag raised, with a thread's state", |clock| {
        notice(clock, donors)
    }),
];

fn main() {
    let clock = Clock::global();
    let rows = chosen();
    let mut rounds = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), times) in rows.iter().zip(&mut rounds) {
            times.push(measure(&clock));
        }
    }
    println!("fiber, median of {ROUNDS} interleaved rounds");
    for ((name, _), times) in rows.iter().zip(&mut rounds) {
        times.sort_by(f64::total_cmp);
        println!("  {name:<50} {:6.1} ns", times[ROUNDS / 2]);
    }
}

/// The rows that the command line names, all without a name.
fn chosen() -> Vec<(&'static str, Measure)> {
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|part| !part.starts_with("--"))
        .collect();
    let named = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    ROWS.into_iter().filter(|(name, _)| named(name)).collect()
}

fn library_switch(clock: &Clock) -> f64 {
    let mut coroutine = Coroutine::new(|yielder, ()| {
        loop {
            yielder.suspend(());
        }
    });
    let time = each(clock, MANY, |_| {
        assert!(matches!(coroutine.resume(()), CoroutineResult::Yield(())));
    });
    coroutine.force_unwind();
    time
}

fn switch(clock: &Clock) -> f64 {
    switch_of(clock, &stacks(), MANY)
}

/// Two fibers in turns: one is suspended, the loop resumes the other.
fn by_loop(clock: &Clock) -> f64 {
    by_loop_of(clock, &stacks())
}

fn by_loop_of(clock: &Clock, stacks: &Stacks) -> f64 {
    let mut fibers = [0, 1].map(|_| {
        let stack = stacks.take().expect("a stack");
        Fiber::new(stack, |turns: &mut u64| {
            for _ in 0..*turns {
                yield_now();
            }
        })
    });
    for fiber in &mut fibers {
        fiber.run(MANY, 0);
    }
    let time = each(clock, 2 * (MANY - 1), |turn| {
        let fiber = &mut fibers[(turn % 2) as usize];
        assert!(matches!(resume(fiber), Turn::Yielded));
    });
    for fiber in &mut fibers {
        resume(fiber);
    }
    time
}

/// Two strands in turns, each of which switches to the other: what a direct switch saves at most beside [`by_loop`].
fn directly(clock: &Clock) -> f64 {
    static KIND: StrandKind<()> = StrandKind::new();
    let stacks = stacks();
    let [first, second] = [0, 1].map(|_| Strand::new(&KIND, stacks.take().expect("a stack"), ()));
    let turns = |me: Strand<()>, other: Strand<()>| {
        for _ in 0..MANY {
            let _section = NoPreempt::enter();
            // SAFETY: `me` runs, in this section alone; the other is armed or suspended, and only the two resume each other.
            unsafe { me.switch_to(other) };
        }
        // Whatever body ends does so in a section.
        std::mem::forget(NoPreempt::enter());
    };
    // SAFETY: both are new, and neither body unwinds.
    unsafe {
        first.arm::<(), _>(move |me| {
            turns(me, second);
            Some(second)
        });
        second.arm::<(), _>(move |me| {
            turns(me, first);
            None
        });
    }
    let start_ns = clock.now_ns();
    // SAFETY: the bench runs in no fiber.
    let left = unsafe { first.run() };
    let time = (clock.now_ns() - start_ns) as f64 / (2 * MANY) as f64;
    assert!(matches!(left, LeftStrand::Finished(strand) if strand == second));
    for strand in [first, second] {
        strand.wait_until_idle();
        // SAFETY: its body has ended, and no handle is used any more.
        stacks.give(unsafe { strand.destroy() });
    }
    time
}

fn library_spawn(clock: &Clock) -> f64 {
    let mut stack = Some(DefaultStack::new(64 << 10).expect("a stack"));
    each(clock, MANY, |number| {
        let taken = stack.take().expect("given back below");
        let mut coroutine = Coroutine::<u64, (), u64>::with_stack(taken, |_, number| number + 1);
        black_box(coroutine.resume(number));
        stack = Some(coroutine.into_stack());
    })
}

fn spawn(clock: &Clock) -> f64 {
    let mut stacks = StackCache::new(Arc::new(stacks()));
    each(clock, MANY, |number| {
        let stack = stacks.take().expect("a stack");
        let mut fiber = Fiber::new(stack, |number: &mut u64| *number += 1);
        black_box(fiber.run(number, 0));
        stacks.give(fiber.into_stack());
    })
}

fn rerun(clock: &Clock) -> f64 {
    rerun_of(clock, &stacks())
}

fn rerun_of(clock: &Clock, stacks: &Stacks) -> f64 {
    let stack = stacks.take().expect("a stack");
    let mut fiber = Fiber::new(stack, |number: &mut u64| *number += 1);
    each(clock, MANY, |number| {
        black_box(fiber.run(number, 0));
    })
}

fn preemption(clock: &Clock) -> f64 {
    preemption_of(clock, &stacks(), MANY)
}

fn made(clock: &Clock) -> f64 {
    each(clock, 200, |_| {
        drop(Stacks::of_donors(64 << 10, 1).expect("a thread can be made"));
    })
}

fn bare_loop(clock: &Clock) -> f64 {
    each(clock, 10 * MANY, |number| {
        black_box(number);
    })
}

fn checked_loop(clock: &Clock) -> f64 {
    each(clock, 10 * MANY, |number| {
        checkpoint();
        black_box(number);
    })
}

fn timed_loop(clock: &Clock) -> f64 {
    let attached = Attached::new();
    attached.self_timed(true);
    checked_loop(clock)
}

/// A round of a loop that goes on, slice after slice.
fn sliced_loop(clock: &Clock, slice_ns: u64, by_timer: bool) -> f64 {
    const SLICED_ROUNDS: u64 = 4_000_000;
    let attached = Attached::new();
    attached.self_timed(true);
    if by_timer {
        let timed = attached.raise_by_timer(*clock);
        timed.expect("the machine has timers");
    }
    let mut fiber = Fiber::new(stacks().take().expect("a stack"), |rounds: &mut u64| {
        for round in 0..*rounds {
            black_box(round);
            checkpoint();
        }
    });
    let slice_ticks = clock.ticks_in(slice_ns);
    attached.begin(1);
    let start_ns = clock.now_ns();
    attached.begin_slice(clock.ticks(), slice_ticks);
    let mut turn = fiber.run(SLICED_ROUNDS, 0);
    while !matches!(turn, Turn::Finished(_)) {
        let now = clock.ticks();
        if !attached.slice_goes_on(now) {
            attached.extend_slice(now, slice_ticks);
        }
        turn = resume(&mut fiber);
    }
    (clock.now_ns() - start_ns) as f64 / SLICED_ROUNDS as f64
}

fn plain_alloc(clock: &Clock) -> f64 {
    allocations(clock, &System)
}

fn guarded_alloc(clock: &Clock) -> f64 {
    allocations(clock, &NoPreemptAlloc(System))
}

fn allocations(clock: &Clock, allocator: &impl GlobalAlloc) -> f64 {
    let layout = Layout::new::<[u64; 8]>();
    each(clock, MANY, |_| {
        // SAFETY: frees what was allocated, with its layout.
        unsafe { allocator.dealloc(black_box(allocator.alloc(layout)), layout) };
    })
}

/// Sends one cache line to another core and back; half the time.
fn line(clock: &Clock) -> f64 {
    const TRIPS: u64 = 20_000;
    let line = Line::default();
    let body = || {
        each(clock, TRIPS, |trip| {
            line.0.store(2 * trip + 1, Ordering::Release);
            line.wait_for(2 * trip + 2);
        }) / 2.0
    };
    on_two_cores(body, || {
        for trip in 0..TRIPS {
            line.wait_for(2 * trip + 1);
            line.0.store(2 * trip + 2, Ordering::Release);
        }
    })
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    }
}

/// From before the store to the flag in one thread to the return from `resume` in the other: the middle of many, by the clock of both.
fn notice(clock: &Clock, stacks: fn() -> Stacks) -> f64 {
    const TURNS: u64 = 5000;
    let lines = (Line::default(), Line::default());
    let (ready, raised_ns) = (&lines.0, &lines.1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let body = move || {
        let attached = Attached::new();
        sender
            .send(attached.flag())
            .expect("the other thread waits");
        let mut fiber = Fiber::new(stacks().take().expect("a stack"), |turns: &mut u64| {
            let own = suspensions();
            while suspensions() - own < *turns {
                checkpoint();
            }
        });
        let mut times: Vec<u64> = (1..=TURNS)
            .map(|turn| {
                attached.begin(turn);
                ready.0.store(turn, Ordering::Release);
                let ended = match turn {
                    1 => fiber.run(TURNS, 0),
                    _ => resume(&mut fiber),
                };
                let now_ns = clock.now_ns();
                assert!(matches!(ended, Turn::Yielded));
                now_ns.saturating_sub(raised_ns.0.load(Ordering::Acquire))
            })
            .collect();
        resume(&mut fiber);
        times.sort_unstable();
        times[times.len() / 2] as f64
    };
    let other = move || {
        let flag = receiver.recv().expect("the other thread sends it");
        for turn in 1..=TURNS {
            ready.wait_for(turn);
            (0..200).for_each(|_| std::hint::spin_loop()); // The other runs by now.
            raised_ns.0.store(clock.now_ns(), Ordering::Release);
            flag.raise(turn);
        }
    };
    on_two_cores(body, other)
}

/// Runs `body` on the first core in pinning order, beside `other` on the second.
fn on_two_cores<T: Send>(body: impl FnOnce() -> T + Send, other: impl FnOnce() + Send) -> T {
    let cores = Topology::read("/sys").map_or_else(|_| Vec::new(), |cores| cores.pinning_order());
    let sit = |nth: usize| {
        if let Some(core) = cores.get(nth) {
            let _ = pin_current(*core);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            sit(1);
            other();
        });
        let first = scope.spawn(move || {
            sit(0);
            body()
        });
        first.join().expect("a bench does not panic")
    })
}
