//! Marked functions yield in every round of their loops, the same functions unmarked do not.
#![expect(unsafe_code, reason = "resumes fibers")]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use headway_fiber::{Attached, Fiber, Stacks, Turn, YieldFlag};
use headway_macros::preemptible;

fn stacks() -> Stacks {
    Stacks::new(64 << 10, 2).expect("there is memory for two stacks")
}

/// Resumes the fiber. No test calls it in a thread-local variable's destructor, where [`Fiber::resume`] is unsound.
fn resume<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

/// The argument of the functions under test: its flag asks the function's own thread to yield after some steps.
struct Job {
    flag: YieldFlag,
    steps: Rc<Cell<u32>>,
}

const ASKED_AFTER: u32 = 3;

impl Job {
    fn step(&self) -> u32 {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() == ASKED_AFTER {
            self.flag.raise(1);
        }
        self.steps.get()
    }
}

type Function = fn(&Job);

/// After how many steps the function yielded, if it did, and how many it took in all.
fn run(function: Function) -> (Option<u32>, u32) {
    let attached = Attached::new();
    let steps = Rc::new(Cell::new(0));
    let job = Job {
        flag: attached.flag(),
        steps: Rc::clone(&steps),
    };
    attached.begin(1);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |job: &mut Job| function(job));
    let yielded = match fiber.run(job, 0) {
        Turn::Yielded => {
            let after = steps.get();
            assert!(
                matches!(resume(&mut fiber), Turn::Finished(_)),
                "asked once, yielded twice"
            );
            Some(after)
        }
        Turn::Finished(_) => None,
    };
    (yielded, steps.get())
}

/// Each function twice: marked as it says, and as it is.
macro_rules! twice {
    ($($(#[$mark:meta])* fn $name:ident($job:ident) { $($body:tt)* })*) => {
        mod marked {
            use super::*;
            $($(#[$mark])* pub(super) fn $name($job: &Job) { $($body)* })*
        }
        mod plain {
            use super::*;
            $(pub(super) fn $name($job: &Job) { $($body)* })*
        }
        const TWICE: &[(&str, Function, Function)] = &[$((stringify!($name), marked::$name, plain::$name)),*];
    };
}

twice! {
    #[preemptible]
    fn for_loop(job) {
        for _ in 0..8 {
            job.step();
        }
    }

    #[preemptible]
    fn while_loop(job) {
        while job.step() < 8 {}
    }

    #[preemptible]
    fn while_let(job) {
        while let 0..8 = job.step() {}
    }

    #[preemptible]
    fn endless(job) {
        let last = loop {
            if job.step() == 8 {
                break 8;
            }
        };
        assert_eq!(last, 8);
    }

    #[preemptible]
    fn always_continues(job) {
        for round in 0..8 {
            job.step();
            if round < 9 {
                continue;
            }
            unreachable!();
        }
    }

    #[preemptible]
    fn labelled(job) {
        'rows: for row in 0.. {
            loop {
                match job.step() {
                    8 => break 'rows,
                    _ if row < 100 => continue 'rows,
                    _ => {}
                }
            }
        }
    }

    #[preemptible]
    fn nested(job) {
        for _ in 0..1 {
            if job.steps.get() == 0 {
                while job.step() < 8 {}
            }
        }
    }

    #[preemptible]
    fn in_a_condition(job) {
        while {
            while job.step() < 8 {}
            false
        } {}
    }

    #[preemptible]
    fn in_a_closure(job) {
        let walk = |last| while job.step() < last {};
        walk(8);
    }

    #[preemptible]
    fn recursion(job) {
        if job.step() < 8 {
            recursion(job);
        }
    }

    #[preemptible(crate = headway_fiber)]
    fn from_elsewhere(job) {
        for _ in 0..8 {
            job.step();
        }
    }
}

#[test]
fn every_kind_of_loop_yields_in_the_next_round_and_only_if_marked() {
    for (name, marked, plain) in TWICE {
        assert_eq!(run(*marked), (Some(ASKED_AFTER), 8), "{name}, marked");
        assert_eq!(run(*plain), (None, 8), "{name}, not marked");
    }
}

#[preemptible(every = 64)]
fn counted(job: &Job) {
    for _ in 0..100 {
        for _ in 0..2 {
            job.step();
        }
    }
}

#[test]
fn counted_rounds_are_those_of_all_loops_together() {
    // In front of the 64th round: 22 outer ones began, and of the inner ones 42, the last at the 64th.
    let (yielded, steps) = run(counted);
    assert_eq!((yielded, steps), (Some(42), 200));
}

#[preemptible(every = 64)]
fn counted_in_closures(job: &Job) {
    // None of the calls has 64 rounds.
    (0..8).for_each(|_| {
        for _ in 0..1 {
            job.step();
        }
    });
    let sum = |n: u32| -> u32 {
        (0..n)
            .map(|i| {
                let mut s = 0;
                while s < i {
                    s += 1;
                }
                s
            })
            .sum()
    };
    assert_eq!(sum(5), 10);
}

#[test]
fn a_closures_first_round_always_looks() {
    assert_eq!(run(counted_in_closures), (Some(ASKED_AFTER), 8));
}

#[preemptible]
#[expect(
    deprecated,
    reason = "the macro warns that it sees no loop of the function's own"
)]
fn what_is_not_its_own(job: &Job) {
    fn item(job: &Job) {
        for _ in 0..8 {
            job.step();
        }
    }
    const CONSTANT: [u8; {
        let mut n = 0;
        while n < 3 {
            n += 1;
        }
        n
    }] = [0; 3];
    let lengths = [0; const {
        let mut n = 0;
        while n < 2 {
            n += 1;
        }
        n
    }];
    item(job);
    assert_eq!(CONSTANT.len() + lengths.len(), 5);
    let future = pin!(async {
        for _ in 0..8 {
            job.step();
        }
    });
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(()));
}

#[test]
fn items_constants_and_futures_are_left_alone() {
    assert_eq!(run(what_is_not_its_own), (None, 16));
}

struct Scanner {
    rounds: u32,
}

impl Scanner {
    /// Attributes, visibility, `self`, generics, and a diverging loop keep what they mean.
    #[must_use]
    #[preemptible(every = 2, crate = headway_fiber)]
    pub(crate) fn until<T>(&mut self, mut next: impl FnMut() -> T, wanted: T) -> T
    where
        T: Copy + PartialEq,
    {
        loop {
            self.rounds += 1;
            let value = next();
            if value == wanted {
                return value;
            }
        }
    }
}

trait Walk {
    fn step(&self) -> bool;

    #[preemptible]
    fn walk(&self) {
        while self.step() {}
    }
}

impl Walk for Job {
    fn step(&self) -> bool {
        self.step() < 8
    }
}

#[test]
fn methods_yield_as_functions_do() {
    let mut scanner = Scanner { rounds: 0 };
    assert_eq!(scanner.until(|| 7, 7), 7);
    assert_eq!(scanner.rounds, 1);
    assert_eq!(
        run(|job| {
            let _ = Scanner { rounds: 0 }.until(|| job.step(), 8);
        }),
        (Some(ASKED_AFTER), 8)
    );
    assert_eq!(run(Walk::walk), (Some(ASKED_AFTER), 8));
}

/// Names that what the macro adds could be mixed up with.
#[preemptible(every = 2)]
fn speaks_of_rounds(rounds: &[u32]) -> u32 {
    fn checkpoint() -> u32 {
        1
    }
    #[expect(
        non_camel_case_types,
        reason = "it stands in the way of a crate's name"
    )]
    struct headway;
    let headway {} = headway {};
    let mut sum = 0;
    for round in rounds {
        let rounds = rounds.len() as u32;
        sum += round * rounds + checkpoint();
    }
    sum
}

#[test]
fn names_of_the_function_are_its_own() {
    assert_eq!(speaks_of_rounds(&[1, 2, 3]), 21);
}

#[preemptible]
fn waits_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {}
}

#[test]
fn another_thread_interrupts_a_loop_that_would_not_end() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let attached = Attached::new();
    let flag = attached.flag();
    attached.begin(1);
    let asker = thread::spawn(move || flag.raise(1));
    let mut fiber = Fiber::new(stacks().take().unwrap(), |_: &mut ()| waits_for(&DONE));
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    asker.join().unwrap();
    DONE.store(true, Ordering::Release);
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
}
