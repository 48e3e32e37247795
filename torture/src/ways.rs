//! What a way is, and how it says what was not so.

use std::sync::atomic::{AtomicU64, Ordering};

use headway::prelude::checkpoint;

/// A way to use what a thread has, once, in a request that is interrupted in the middle of it.
#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    pub run: fn(seed: u64),
}

/// The ways of a module, by the names of their functions.
#[macro_export]
macro_rules! ways {
    ($($name:ident),* $(,)?) => {
        pub const WAYS: &[$crate::ways::Way] = &[$($crate::ways::Way { name: stringify!($name), run: $name }),*];
    };
}

/// What was not so with the current way.
pub static WRONG: AtomicU64 = AtomicU64::new(0);

/// Counts what was not as a thread would find it, and says the first few.
#[track_caller]
pub fn expect(holds: bool) {
    if !holds && WRONG.fetch_add(1, Ordering::Relaxed) < 3 {
        eprintln!("not so: {}", std::panic::Location::caller());
    }
}

/// A microsecond, with probes in it.
pub fn work(mut seed: u64) -> u64 {
    for _ in 0..8 {
        for i in 0..60 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
        }
        checkpoint();
    }
    seed
}

/// A critical section: counts how many are inside.
pub struct Section(AtomicU64);

impl Section {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Stays inside for a while, alone.
    #[track_caller]
    pub fn visit(&self) {
        expect(self.0.fetch_add(1, Ordering::SeqCst) == 0);
        work(1);
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
