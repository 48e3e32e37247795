//! Preemptions, and nothing is lost over any of them: registers, `errno`, control words, panics and C++ exceptions in flight; in one thread,
//! and in fibers that change it. `make soak` makes a million of each kind.
#![expect(unsafe_code, reason = "fibers that migrate, control registers")]

mod common;

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;

use common::registers::{Image, Probe, Width};
use common::relay::Relay;
use common::{AbortOnPanic, Rng, Soaked, cxx, errno, preemptions_or, resume, set_errno, stacks};
use headway_fiber::{Attached, Fiber, SendFiber, Stacks, Turn, YieldFlag, checkpoint};

/// The threads of a soak, as a fiber sees them: it knows its thread by the number that the thread passed in, never by a thread-local.
struct Threads {
    flags: Vec<YieldFlag>,
    epochs: Vec<AtomicU64>,
}

impl Threads {
    /// Asks what runs in that thread to yield.
    fn ask(&self, thread: usize) {
        self.flags[thread].raise(self.epochs[thread].load(Relaxed));
    }
}

/// A job: rounds, each of which is preempted at least once.
struct Rounds {
    rng: Rng,
    rounds: u32,
    probe: Probe,
    threads: Arc<Threads>,
    soaked: Arc<Soaked>,
    /// The thread that runs it now.
    here: Arc<AtomicUsize>,
    /// How often it was to yield.
    asked: u64,
}

impl Rounds {
    /// Asks for a preemption where it does not come by itself.
    fn ask(&mut self) {
        self.asked += 1;
        if let Probe::Flag = self.probe {
            self.threads.ask(self.here.load(Relaxed));
        }
    }

    fn run(&mut self) {
        for round in 0..self.rounds {
            match round % 16 {
                0 => self.panics(),
                4 if self.soaked.throws => self.throws(),
                8 => self.rounds_up(),
                _ => self.fills_registers(),
            }
        }
    }

    fn fills_registers(&mut self) {
        let widths = Width::kept_by_probes();
        let width = widths[self.rng.below(widths.len())];
        let image = Image::random(&mut self.rng, width);
        let number = self.rng.below(100) as i32;
        set_errno(number);
        self.ask();
        let after = image.across(self.probe, width);
        assert_eq!(errno(), number);
        assert!(image == after, "{width:?}");
    }

    /// A panic is caught that began before a preemption; and while it unwinds, there is none.
    fn panics(&mut self) {
        struct Unwinding<'a>(&'a mut Rounds);
        impl Drop for Unwinding<'_> {
            fn drop(&mut self) {
                assert!(thread::panicking());
                let here = self.0.here.load(Relaxed);
                if let Probe::Flag = self.0.probe {
                    self.0.threads.ask(here);
                    checkpoint();
                }
            }
        }
        let payload = self.rng.next();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let unwinding = Unwinding(self);
            let soaked = Arc::clone(&unwinding.0.soaked);
            soaked.in_a_panic(|| unwinding.0.fills_registers());
            resume_unwind(Box::new(payload));
        }));
        assert_eq!(*caught.unwrap_err().downcast::<u64>().unwrap(), payload);
        // A probe grants the interrupt that was requested during the unwinding.
        self.fills_registers();
    }

    /// Interrupts while C++ throws and catches exceptions, until there are as many preemptions.
    fn throws(&mut self) {
        let soaked = Arc::clone(&self.soaked);
        cxx::throws(self.rng.next(), &mut || {
            soaked.in_exceptions(|| self.fills_registers());
        });
    }

    /// The rounding mode is the fiber's own.
    fn rounds_up(&mut self) {
        const UP: u32 = 0x1f80 | 0x4000;
        // The compiler takes the rounding mode for fixed: what is hidden before and after keeps the division in its place.
        let third = |by: f64| black_box(black_box(1.0) / black_box(by));
        let nearest = third(3.0);
        mxcsr::set(UP);
        let up = third(3.0);
        self.fills_registers();
        assert_eq!(
            (mxcsr::get() & !0x3f, third(3.0).to_bits()),
            (UP, up.to_bits())
        );
        mxcsr::set(0x1f80);
        assert!(up > nearest);
    }
}

mod mxcsr {
    use std::arch::asm;

    pub(crate) fn get() -> u32 {
        let mut mxcsr = 0_u32;
        // SAFETY: stores a register to a variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack)) };
        mxcsr
    }

    pub(crate) fn set(mxcsr: u32) {
        // SAFETY: valid bits.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
    }
}

/// One of the threads: takes turns with what it is given, and leaves nothing as it found it.
struct Driver {
    index: usize,
    threads: Arc<Threads>,
    rng: Rng,
    turns: u64,
    /// Dropped last: it waits for the flags.
    attached: Attached,
}

impl Driver {
    fn turn(&mut self, here: &AtomicUsize, turn: impl FnOnce() -> Turn<Rounds>) -> Turn<Rounds> {
        self.turns += 1;
        self.attached.begin(self.turns);
        self.threads.epochs[self.index].store(self.turns, Relaxed);
        self.attached.set_deadline(1);
        here.store(self.index, Relaxed);
        let widths = Width::available();
        let width = widths[self.rng.below(widths.len())];
        Image::random(&mut self.rng, width).across(Probe::None, width);
        set_errno(1000 + self.rng.below(100) as i32);
        let turn = turn();
        assert_eq!(
            mxcsr::get() & !0x3f,
            0x1f80,
            "the fiber's are not the thread's"
        );
        turn
    }
}

/// `Fiber` and where it learns which thread runs it.
struct Runner {
    fiber: SendFiber<Rounds>,
    here: Arc<AtomicUsize>,
    seed: u64,
    jobs: u32,
}

const FIBERS: u64 = 8;
const ROUNDS: u32 = 500;

/// Runs the soak's preemptions in `count` threads, among which the fibers go around.
fn soak(count: usize, probe: Probe) {
    let preemptions = preemptions_or(100_000);
    let stacks = stacks();
    let fibers = (0..FIBERS).map(|seed| runner(&stacks, seed));
    let relay = Relay::new(count, fibers);
    let soaked = Arc::new(Soaked::new());
    let jobs = (preemptions / FIBERS).div_ceil(u64::from(ROUNDS)) as u32;
    thread::scope(|scope| {
        let (to_main, from_threads) = mpsc::channel();
        let to_threads: Vec<_> = (0..count)
            .map(|index| {
                let (to_main, relay, soaked) = (to_main.clone(), &relay, &soaked);
                let (to_thread, from_main) = mpsc::channel();
                scope.spawn(move || {
                    let attached = Attached::new();
                    to_main.send((index, attached.flag())).unwrap();
                    let driver = Driver {
                        index,
                        threads: from_main.recv().unwrap(),
                        rng: Rng::new(index as u64),
                        turns: 0,
                        attached,
                    };
                    drive(driver, relay, soaked, jobs, probe);
                });
                to_thread
            })
            .collect();
        let mut flags: Vec<_> = from_threads.iter().take(count).collect();
        flags.sort_by_key(|(index, _)| *index);
        let threads = Arc::new(Threads {
            flags: flags.into_iter().map(|(_, flag)| flag).collect(),
            epochs: (0..count).map(|_| AtomicU64::new(0)).collect(),
        });
        for to_thread in &to_threads {
            to_thread.send(Arc::clone(&threads)).unwrap();
        }
        // The threads end when the last flag is gone.
    });
    soaked.report(&format!("{probe:?}"), count, preemptions);
}

fn runner(stacks: &Stacks, seed: u64) -> Runner {
    let fiber = Fiber::new(stacks.take().unwrap(), Rounds::run);
    Runner {
        // SAFETY: what lies on the stack is `Send`, and nothing of it is thread-local: `errno` is looked up anew (see `common`), and panics are
        // not preempted.
        fiber: unsafe { fiber.migratable() },
        here: Arc::default(),
        seed,
        jobs: 0,
    }
}

fn drive(mut driver: Driver, relay: &Relay<Runner>, soaked: &Arc<Soaked>, jobs: u32, probe: Probe) {
    let _loud = AbortOnPanic;
    while let Some(mut runner) = relay.take(driver.index, &mut driver.rng) {
        let mut fiber = runner.fiber.into_inner();
        let turn = if fiber.is_suspended() {
            let moved = runner.here.load(Relaxed) != driver.index;
            soaked.migrations.fetch_add(u64::from(moved), Relaxed);
            driver.turn(&runner.here, || resume(&mut fiber))
        } else {
            let job = Rounds {
                rng: Rng::new(runner.seed << 32 | u64::from(runner.jobs)),
                rounds: ROUNDS,
                probe,
                threads: Arc::clone(&driver.threads),
                soaked: Arc::clone(soaked),
                here: Arc::clone(&runner.here),
                asked: 0,
            };
            driver.turn(&runner.here, || fiber.run(job, 0))
        };
        match turn {
            Turn::Yielded => {
                soaked.preemptions.fetch_add(1, Relaxed);
            }
            Turn::Finished(job) => {
                // More than one yields in a round that panics.
                assert!(job.asked >= u64::from(ROUNDS));
                runner.jobs += 1;
            }
        }
        if runner.jobs < jobs {
            // SAFETY: as in `runner`.
            runner.fiber = unsafe { fiber.migratable() };
            relay.pass_on(driver.index, runner);
        } else {
            relay.drop_out();
        }
    }
}

#[test]
fn flags_in_one_thread() {
    soak(1, Probe::Flag);
}

#[test]
fn deadlines_in_one_thread() {
    soak(1, Probe::Tsc);
}

#[test]
fn fibers_change_threads_at_every_flag() {
    soak(3, Probe::Flag);
}

#[test]
fn fibers_change_threads_at_every_deadline() {
    soak(3, Probe::Tsc);
}
