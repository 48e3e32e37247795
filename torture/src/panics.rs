//! Panics in flight.

use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::ways;
use crate::ways::{expect, work};

ways![
    panic,
    panic_while_it_unwinds,
    panic_within_a_panic,
    panic_thrown_again,
    panic_of_a_thread,
    backtrace,
];

fn number_of(payload: Box<dyn std::any::Any + Send>) -> u64 {
    payload.downcast::<u64>().map_or(0, |number| *number)
}

fn panic(seed: u64) {
    let caught = catch_unwind(|| {
        work(seed);
        resume_unwind(Box::new(seed))
    });
    work(seed);
    expect(caught.is_err_and(|payload| number_of(payload) == seed));
    expect(!thread::panicking());
}

struct CountsUnwinding;

impl Drop for CountsUnwinding {
    fn drop(&mut self) {
        expect(thread::panicking());
        work(3);
        expect(thread::panicking());
    }
}

fn panic_while_it_unwinds(seed: u64) {
    let caught = catch_unwind(|| {
        let _counts = CountsUnwinding;
        resume_unwind(Box::new(seed))
    });
    expect(caught.is_err_and(|payload| number_of(payload) == seed));
    work(seed);
    expect(!thread::panicking());
}

fn panic_within_a_panic(seed: u64) {
    struct PanicsInside(u64);
    impl Drop for PanicsInside {
        fn drop(&mut self) {
            let inner = self.0 + 1;
            let caught = catch_unwind(|| {
                let _counts = CountsUnwinding;
                resume_unwind(Box::new(inner))
            });
            work(inner);
            expect(caught.is_err_and(|payload| number_of(payload) == inner));
        }
    }
    let caught = catch_unwind(|| {
        let _inside = PanicsInside(seed);
        resume_unwind(Box::new(seed))
    });
    expect(caught.is_err_and(|payload| number_of(payload) == seed));
}

fn panic_thrown_again(seed: u64) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let inner = catch_unwind(|| resume_unwind(Box::new(seed)));
        work(seed);
        inner.unwrap_or_else(|payload| resume_unwind(payload))
    }));
    work(seed);
    expect(caught.is_err_and(|payload: Box<_>| number_of(payload) == seed));
}

fn panic_of_a_thread(seed: u64) {
    let other = thread::spawn(move || {
        work(seed);
        resume_unwind(Box::new(seed))
    });
    work(seed);
    let joined: thread::Result<()> = other.join();
    expect(joined.is_err_and(|payload| number_of(payload) == seed));
}

fn backtrace(seed: u64) {
    if !seed.is_multiple_of(8) {
        return; // It takes long.
    }
    work(seed);
    let trace = Backtrace::force_capture();
    work(seed);
    expect(trace.status() == std::backtrace::BacktraceStatus::Captured);
}
