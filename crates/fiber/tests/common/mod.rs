//! The shared parts of the tests.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(unsafe_code, reason = "tests look at registers")]

pub(crate) mod cxx;
pub(crate) mod jobs;
pub(crate) mod registers;
pub(crate) mod relay;
pub(crate) mod signals;
pub(crate) mod traps;

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use headway_fiber::{Fiber, Stacks, Turn, suspensions};

/// A pool for tests.
pub(crate) fn stacks() -> Stacks {
    Stacks::new(64 << 10, 2).expect("there is memory for two stacks")
}

/// Resumes the fiber. No test calls it in a thread-local variable's destructor, where [`Fiber::resume`] is unsound.
pub(crate) fn resume<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

/// A small generator (xorshift64*), seeded: the same turns in every run.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

pub(crate) fn errno() -> i32 {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(errno: i32) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// The time-stamp counter.
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// A thread that fails leaves fibers behind, whose flags its `Attached` would wait for for ever.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Runs a test that is ignored otherwise in a process of its own: this test binary again. A sanitizer there leaves faults to the program, and
/// frames that returned alone; `options` may say otherwise.
pub(crate) fn run_alone(test: &str, options: &str) -> Output {
    let binary = std::env::current_exe().expect("a test binary has a path");
    let arguments = [
        "--exact",
        test,
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ];
    let options =
        format!("handle_segv=0:handle_sigbus=0:detect_stack_use_after_return=0:{options}");
    Command::new(binary)
        .args(arguments)
        .env("ASAN_OPTIONS", &options)
        .env("TSAN_OPTIONS", &options)
        .output()
        .expect("the binary starts")
}

/// How many preemptions a soak makes: `HEADWAY_SOAK`, which `make soak` sets to a million; else the default, of which a sanitizer sees a tenth.
pub(crate) fn preemptions_or(else_: u64) -> u64 {
    let slow = cfg!(any(headway_asan, headway_tsan));
    match std::env::var("HEADWAY_SOAK") {
        Ok(number) => number.parse().expect("HEADWAY_SOAK is a number"),
        Err(_) => else_ / if slow { 10 } else { 1 },
    }
}

/// The counts of a soak.
pub(crate) struct Soaked {
    begun: Instant,
    /// Whether C++ exceptions are part of it.
    pub(crate) throws: bool,
    pub(crate) preemptions: AtomicU64,
    pub(crate) migrations: AtomicU64,
    across_panics: AtomicU64,
    across_exceptions: AtomicU64,
}

impl Soaked {
    pub(crate) fn new() -> Soaked {
        Soaked {
            begun: Instant::now(),
            throws: cxx::loaded(),
            preemptions: AtomicU64::new(0),
            migrations: AtomicU64::new(0),
            across_panics: AtomicU64::new(0),
            across_exceptions: AtomicU64::new(0),
        }
    }

    /// A stretch that a panic will end, in which registers are interrupted.
    pub(crate) fn in_a_panic(&self, stretch: impl FnOnce()) {
        count(&self.across_panics, stretch);
    }

    /// A stretch with C++ exceptions in flight.
    pub(crate) fn in_exceptions(&self, stretch: impl FnOnce()) {
        count(&self.across_exceptions, stretch);
    }

    /// Checks that there was some of everything, and says how much: `make soak` shows it.
    pub(crate) fn report(&self, mechanism: &str, threads: usize, least: u64) {
        let [preemptions, migrations, panics, exceptions] = [
            &self.preemptions,
            &self.migrations,
            &self.across_panics,
            &self.across_exceptions,
        ]
        .map(|count| count.load(Relaxed));
        let seconds = self.begun.elapsed().as_secs_f64();
        println!(
            "soak: {mechanism}, {threads} threads: {preemptions} preemptions in {seconds:.1} s, all with registers and errno, {panics} in \
             catch_unwind, {exceptions} with C++ exceptions in flight; {migrations} went on in another thread"
        );
        assert!(preemptions >= least);
        assert!(panics > 0);
        assert_eq!(exceptions > 0, self.throws);
        assert!(threads == 1 || migrations >= least / 2);
    }
}

fn count(suspended: &AtomicU64, stretch: impl FnOnce()) {
    let before = suspensions();
    stretch();
    suspended.fetch_add(suspensions() - before, Relaxed);
}
