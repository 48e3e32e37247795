//! Sanitizers inside fibers: they report mistakes, and stay silent about correct code.
//!
//! A report ends its process, so each mistake is made in one of its own: this test binary again, with a test that is ignored otherwise. The
//! controls are the other tests of this crate, none of which may be reported.
#![cfg(any(headway_asan, headway_tsan))]
#![expect(unsafe_code, reason = "the mistakes")]

mod common;

use common::{resume, run_alone, stacks};
use headway_fiber::{Fiber, SendFiber, Stacks, Turn, yield_now};

/// The report must be there, and name the function that makes the mistake.
fn assert_reported(test: &str, options: &str, report: &str, function: &str) {
    let output = run_alone(test, options);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.contains(report), "no '{report}' in\n{stderr}");
    assert!(stderr.contains(function), "no '{function}' in\n{stderr}");
}

/// Runs a body that yields once.
fn in_two_turns(body: fn(&mut ())) {
    let mut fiber = Fiber::new(stacks().take().unwrap(), body);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
}

/// The same with a thread's state, the second turn in another thread.
fn in_two_threads(body: fn(&mut ())) {
    let stacks = Stacks::of_donors(64 << 10, 1).unwrap();
    let Ok(mut fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), body) else {
        unreachable!("the stack is a donor's")
    };
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(fiber.resume(), Turn::Finished(())));
    });
}

#[cfg(headway_asan)]
mod address {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_freed_allocation_is_watched_over_a_suspension() {
        let test = "address::uses_memory_after_it_was_freed";
        assert_reported(test, "", "heap-use-after-free", "use_freed_memory");
    }

    #[test]
    fn a_frame_that_returned_is_watched_over_a_suspension() {
        let test = "address::uses_a_frame_after_it_returned";
        let options = "detect_stack_use_after_return=1";
        assert_reported(
            test,
            options,
            "stack-use-after-return",
            "use_a_returned_frame",
        );
    }

    #[test]
    fn the_bounds_of_what_lies_on_a_fibers_stack_are_watched() {
        let test = "address::writes_past_an_array";
        assert_reported(test, "", "stack-buffer-overflow", "write_past_an_array");
    }

    #[test]
    fn what_a_fiber_lost_is_a_leak() {
        assert_reported("address::loses_memory", "", "LeakSanitizer", "lose_memory");
    }

    #[test]
    fn mistakes_with_a_threads_state_are_watched_from_thread_to_thread() {
        for (test, options, report, function) in [
            (
                "uses_memory_after_it_was_freed",
                "",
                "heap-use-after-free",
                "use_freed_memory",
            ),
            (
                "uses_a_frame_after_it_returned",
                "detect_stack_use_after_return=1",
                "stack-use-after-return",
                "use_a_returned_frame",
            ),
            (
                "writes_past_an_array",
                "",
                "stack-buffer-overflow",
                "write_past_an_array",
            ),
            ("loses_memory", "", "LeakSanitizer", "lose_memory"),
        ] {
            let test = format!("address::lent_{test}");
            assert_reported(&test, options, report, function);
        }
    }

    #[test]
    fn what_a_fiber_owns_that_was_given_up_is_none() {
        let output = run_alone("address::is_given_up", "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn uses_memory_after_it_was_freed() {
        in_two_turns(use_freed_memory);
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn lent_uses_memory_after_it_was_freed() {
        in_two_threads(use_freed_memory);
    }

    fn use_freed_memory((): &mut ()) {
        let number = Box::into_raw(Box::new(7_u64));
        yield_now();
        // SAFETY: none: the second is the mistake.
        unsafe {
            drop(Box::from_raw(number));
            black_box(number).write_volatile(8);
        }
    }

    /// Without `black_box`: of a function with assembly in it the sanitizer leaves the frame on the stack.
    #[inline(never)]
    fn address_of_a_local(address: &AtomicPtr<u64>) {
        let mut local = 7_u64;
        address.store(&raw mut local, Relaxed);
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn uses_a_frame_after_it_returned() {
        in_two_turns(use_a_returned_frame);
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn lent_uses_a_frame_after_it_returned() {
        in_two_threads(use_a_returned_frame);
    }

    fn use_a_returned_frame((): &mut ()) {
        let local = AtomicPtr::default();
        address_of_a_local(&local);
        yield_now();
        // SAFETY: none.
        unsafe { local.load(Relaxed).write_volatile(8) };
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn writes_past_an_array() {
        in_two_turns(write_past_an_array);
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn lent_writes_past_an_array() {
        in_two_threads(write_past_an_array);
    }

    fn write_past_an_array((): &mut ()) {
        let mut array = [0_u8; 24];
        yield_now();
        let end = black_box(&raw mut array).cast::<u8>().wrapping_add(24);
        // SAFETY: none.
        unsafe { end.write_volatile(1) };
    }

    #[test]
    #[ignore = "leaks: another test runs it and watches"]
    fn loses_memory() {
        in_two_turns(lose_memory);
    }

    #[test]
    #[ignore = "ends its process: another test runs it and watches"]
    fn lent_loses_memory() {
        in_two_threads(lose_memory);
    }

    fn lose_memory((): &mut ()) {
        let lost = black_box(Box::new([7_u64; 100]));
        yield_now();
        std::mem::forget(black_box(lost));
    }

    #[test]
    #[ignore = "leaks, with leave: another test runs it and watches"]
    fn is_given_up() {
        let mut fiber = Fiber::new(stacks().take().unwrap(), |job: &mut Vec<u64>| {
            let owned = black_box(vec![7_u64; 100]);
            yield_now();
            job.extend(owned);
        });
        assert_eq!(fiber.run(vec![1; 100], 0), Turn::Yielded);
        drop(fiber);
    }
}

#[cfg(headway_tsan)]
mod thread {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    #[test]
    fn a_race_between_fibers_of_two_threads_is_seen() {
        let test = "thread::races";
        assert_reported(test, "halt_on_error=1", "data race", "write_shared");
    }

    #[test]
    fn a_race_with_a_fiber_handed_over_without_order_is_seen() {
        let test = "thread::is_handed_over_by_a_relaxed_store";
        assert_reported(test, "halt_on_error=1", "data race", test);
    }

    #[test]
    fn a_race_between_fibers_with_threads_states_is_seen() {
        let test = "thread::lent_races";
        assert_reported(test, "halt_on_error=1", "data race", "write_shared");
    }

    /// What a turn did comes before the next one, in whichever thread.
    #[test]
    fn turns_of_a_fiber_with_a_threads_state_are_in_order() {
        in_two_threads(|()| {
            let mut count = Box::new(1_u64);
            yield_now();
            *count += 1;
            assert_eq!(*count, 2);
        });
    }

    static mut SHARED: u64 = 0;
    static ARRIVED: AtomicUsize = AtomicUsize::new(0);

    #[test]
    #[ignore = "races: another test runs it and watches"]
    fn races() {
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(|| in_two_turns(write_shared))))
        });
    }

    #[test]
    #[ignore = "races: another test runs it and watches"]
    fn lent_races() {
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(|| in_two_threads(write_shared))));
        });
    }

    fn write_shared((): &mut ()) {
        yield_now();
        // At the same time, or what the first thread does at its end may come before what the second does at its start.
        ARRIVED.fetch_add(1, Relaxed);
        while ARRIVED.load(Relaxed) < 2 {
            thread::yield_now();
        }
        // SAFETY: none.
        unsafe { std::hint::black_box(&raw mut SHARED).write(1) };
    }

    #[test]
    #[ignore = "races: another test runs it and watches"]
    fn is_handed_over_by_a_relaxed_store() {
        let mut fiber = Fiber::new(stacks().take().unwrap(), |count: &mut u64| {
            *count += 1;
            yield_now();
            *count += 1;
        });
        let handed = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let raw = loop {
                    let raw = handed.load(Relaxed);
                    if let Some(raw) = NonNull::new(raw as *mut ()) {
                        break raw;
                    }
                    thread::yield_now();
                };
                // SAFETY: none: the fiber's frames may not be seen here yet.
                let mut fiber = unsafe { Fiber::<u64>::from_raw(raw) };
                assert_eq!(resume(&mut fiber), Turn::Finished(2));
            });
            assert_eq!(fiber.run(0, 0), Turn::Yielded);
            // SAFETY: nothing on the stack is the thread's.
            let fiber: SendFiber<u64> = unsafe { fiber.migratable() };
            let raw = fiber.into_inner().into_raw();
            handed.store(raw.as_ptr() as usize, Relaxed);
        });
    }
}
