//! Preemption by signal: from inside the handler, at any instruction, with everything live.
#![expect(unsafe_code, reason = "signals, and fibers that migrate")]

mod common;

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;

use common::registers::{Image, Probe, Width};
use common::relay::Relay;
use common::signals::SignalTimer;
use common::{AbortOnPanic, Rng, Soaked, cxx, errno, preemptions_or, resume, set_errno, stacks};
use headway_fiber::{
    Asker, Attached, BySignal, Fiber, FiberMutex, Mechanism, NoPreempt, NoPreemptAlloc, Preempter,
    SendFiber, Turn, report_overflows, shield, unshield, yield_now,
};

/// The fibers here allocate, and are interrupted wherever they are.
#[global_allocator]
static ALLOCATOR: NoPreemptAlloc<System> = NoPreemptAlloc(System);

/// Two numbers that are equal whenever nobody holds the lock.
type Pair = FiberMutex<(u64, u64)>;

struct Job {
    rng: Rng,
    rounds: u32,
    pair: Arc<Pair>,
    soaked: Arc<Soaked>,
}

impl Job {
    fn run(&mut self) {
        for round in 0..self.rounds {
            match round % 4 {
                0 => self.panics(),
                2 if self.soaked.throws => self.throws(),
                _ => self.fills_registers(),
            }
            self.counts_in_a_lock();
        }
    }

    fn fills_registers(&mut self) {
        let widths = Width::available();
        let width = widths[self.rng.below(widths.len())];
        let image = Image::random(&mut self.rng, width);
        let number = self.rng.below(100) as i32;
        {
            // Others' frames set it too, and `set_errno` holds an address between two instructions.
            let _section = NoPreempt::enter();
            set_errno(number);
        }
        let after = image.across(Probe::Elsewhere, width);
        let found = {
            let _section = NoPreempt::enter();
            errno()
        };
        assert!(image == after, "{width:?}");
        assert_eq!(found, number);
    }

    /// A panic is caught that began after an interruption. The standard library counts a thread's panics: that is not interrupted.
    fn panics(&mut self) {
        let payload = self.rng.next();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let soaked = Arc::clone(&self.soaked);
            soaked.in_a_panic(|| self.fills_registers());
            shield();
            resume_unwind(Box::new(payload));
        }));
        unshield();
        assert_eq!(*caught.unwrap_err().downcast::<u64>().unwrap(), payload);
    }

    fn throws(&mut self) {
        let soaked = Arc::clone(&self.soaked);
        cxx::throws(self.rng.next(), &mut || {
            soaked.in_exceptions(|| self.fills_registers());
        });
    }

    fn counts_in_a_lock(&mut self) {
        let mut pair = self.pair.lock();
        pair.0 += 1;
        Image::random(&mut self.rng, Width::Sse).across(Probe::Elsewhere, Width::Sse);
        pair.1 += 1;
        assert_eq!(pair.0, pair.1);
    }
}

const FIBERS: u64 = 32;
const ROUNDS: u32 = 50;

/// The interrupting thread's view of the interrupted one.
struct Asked {
    asker: Asker,
    epoch: Arc<AtomicU64>,
}

/// Whence the signals come.
#[derive(Clone, Copy)]
enum From {
    /// Another thread, which asks once in each turn.
    Thread,
    /// A timer of each thread's own, once in each turn: where a signal takes longer than its period, one that comes again and again leaves no time for anything else.
    Timer,
}

struct Soak {
    /// Fibers, and in which thread they ran before.
    relay: Relay<(SendFiber<Job>, usize)>,
    /// How many preemptions are enough.
    target: u64,
    soaked: Arc<Soaked>,
    pair: Arc<Pair>,
}

impl Soak {
    fn is_enough(&self) -> bool {
        self.soaked.preemptions.load(Relaxed) >= self.target
    }
}

/// Interrupts fibers in `count` threads until there were that many preemptions.
fn soak(count: usize, preemptions: u64, from: From) {
    let stacks = stacks();
    let fibers = (0..FIBERS).map(|_| {
        let fiber = Fiber::new(stacks.take().unwrap(), Job::run);
        // SAFETY: its frames hold nothing of a thread's (see `Job`).
        (unsafe { fiber.migratable() }, count)
    });
    let soak = Soak {
        relay: Relay::new(count, fibers),
        target: preemptions,
        soaked: Arc::new(Soaked::new()),
        pair: Arc::default(),
    };
    thread::scope(|scope| {
        let (to_main, from_threads) = mpsc::channel();
        for index in 0..count {
            let (soak, to_main) = (&soak, to_main.clone());
            scope.spawn(move || drive(index, soak, from, &to_main));
        }
        drop(to_main);
        let asked: Vec<Asked> = from_threads.iter().take(count).collect();
        if let From::Thread = from {
            interrupt(&asked, || soak.is_enough());
        }
    });
    soak.soaked.report("Signal", count, preemptions);
    let pair = soak.pair.lock();
    assert!(pair.0 > 0 && pair.0 == pair.1 && pair.0.is_multiple_of(u64::from(ROUNDS)));
}

/// Asks each thread once in each of its turns, at any moment of it.
fn interrupt(threads: &[Asked], enough: impl Fn() -> bool) {
    let mut rng = Rng::new(7);
    let mut last = vec![0; threads.len()];
    while !enough() {
        for (asked, last) in threads.iter().zip(&mut last) {
            let epoch = asked.epoch.load(Relaxed);
            if epoch != *last {
                (0..rng.below(1000)).for_each(|_| std::hint::spin_loop());
                asked.asker.ask(epoch);
                *last = epoch;
            } else {
                thread::yield_now(); // It may share this thread's core.
            }
        }
    }
}

/// Takes turns with the fibers; when there were preemptions enough, lets them finish.
fn drive(index: usize, soak: &Soak, from: From, to_main: &mpsc::Sender<Asked>) {
    report_overflows(|_| None).expect("handlers can be installed");
    let attached = Attached::new();
    // SAFETY: what the fibers share is guarded: the allocator, the pair, `errno`.
    let thread = unsafe { BySignal::new(&attached) }.expect("nobody else handles the signal");
    assert_eq!(thread.mechanism(), Mechanism::Signal);
    let epoch = Arc::new(AtomicU64::new(0));
    let own = attached.flag();
    let timer = match from {
        From::Thread => None,
        From::Timer => Some(SignalTimer::unset(libc::SIGURG)),
    };
    let told = Asked {
        asker: thread.asker().unwrap(),
        epoch: Arc::clone(&epoch),
    };
    to_main.send(told).unwrap();
    let _loud = AbortOnPanic;
    let mut rng = Rng::new(index as u64);
    let mut turns = 0;
    while let Some((fiber, before)) = soak.relay.take(index, &mut rng) {
        turns += 1;
        thread.begin(turns, u64::MAX);
        epoch.store(turns, Relaxed);
        if let Some(timer) = &timer {
            own.raise(turns); // Nothing here has probes: it is for the handler.
            timer.once_in(1 + rng.below(WITHIN_NS) as i64);
        }
        let mut fiber = fiber.into_inner();
        let turn = if fiber.is_suspended() {
            let moved = u64::from(before != index);
            soak.soaked.migrations.fetch_add(moved, Relaxed);
            resume(&mut fiber)
        } else {
            let job = Job {
                rng: Rng::new(turns << 8 | index as u64),
                rounds: ROUNDS,
                pair: Arc::clone(&soak.pair),
                soaked: Arc::clone(&soak.soaked),
            };
            fiber.run(job, 0)
        };
        let yielded = matches!(turn, Turn::Yielded);
        let enough = soak.is_enough();
        soak.soaked
            .preemptions
            .fetch_add(u64::from(yielded), Relaxed);
        if yielded || !enough {
            // SAFETY: as in `soak`.
            let fiber = unsafe { fiber.migratable() };
            soak.relay.pass_on(index, (fiber, index));
        } else {
            soak.relay.drop_out();
        }
    }
}

/// A timer interrupts at a random moment of so long a time from the begin of a turn, ns.
const WITHIN_NS: usize = 40_000;

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn fibers_are_interrupted_anywhere() {
    soak(1, preemptions_or(10_000), From::Timer);
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn threads_interrupt_each_other() {
    soak(1, 300, From::Thread);
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "the one sometimes takes a fiber's stack for another's, the other delays signals"
)]
fn interrupted_fibers_go_on_in_other_threads() {
    soak(2, preemptions_or(10_000), From::Timer);
}

#[test]
fn a_signal_in_a_section_waits_for_its_end() {
    let attached = Attached::new();
    // SAFETY: the fiber computes, in a section.
    let thread = unsafe { BySignal::new(&attached) }.unwrap();
    let asker = thread.asker().unwrap();
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |steps: &mut Vec<u32>| {
        let section = NoPreempt::enter();
        asker.ask(1); // This thread: the signal is here when the call returns.
        steps.push(1);
        drop(section);
        steps.push(2);
        asker.ask(2);
        steps.push(3);
        yield_now();
    });
    thread.begin(1, u64::MAX);
    assert_eq!(fiber.run(Vec::with_capacity(4), 0), Turn::Yielded);
    // An epoch that is over: no effect.
    thread.begin(3, u64::MAX);
    assert_eq!(resume(&mut fiber), Turn::Yielded);
    assert_eq!(resume(&mut fiber), Turn::Finished(vec![1, 2, 3]));
    drop(fiber); // It holds the asker, for which `attached` waits.
}
