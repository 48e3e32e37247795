//! What the tests share.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(unsafe_code, reason = "tests look at registers")]

pub(crate) mod registers;

use headway_fiber::Stacks;

/// A pool for tests.
pub(crate) fn stacks() -> Stacks {
    Stacks::new(64 << 10, 2).expect("there is memory for two stacks")
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
