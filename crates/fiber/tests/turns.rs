//! Fibers, asked in every way there is, on one thread.

#![expect(unsafe_code, reason = "resuming and unwinding fibers; a fork")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headway_fiber::abi::MOST_SKIPPED;
use headway_fiber::{
    Attached, Fiber, MAX_STACK_BYTES, NoPreempt, Section, StackCache, Stacks, Turn, WorkMeter,
    abandoned, checkpoint, checkpoint_at, in_fiber, suspensions, yield_now,
};
use headway_machine::Clock;

fn stacks() -> Stacks {
    Stacks::new(64 << 10, 2).expect("there is memory for two stacks")
}

/// Resumes the fiber. No test calls it in a thread-local variable's destructor, where [`Fiber::resume`] is unsound.
fn resume<J>(fiber: &mut Fiber<J>) -> Turn<J> {
    // SAFETY: no destructor of a thread-local variable calls this.
    unsafe { fiber.resume() }
}

#[test]
fn a_fiber_is_reused_across_jobs() {
    let stacks = stacks();
    let mut fiber = Fiber::new(stacks.take().unwrap(), |job: &mut Vec<u32>| {
        job.push(1);
        yield_now();
        job.push(2);
    });
    for _ in 0..1000 {
        assert_eq!(fiber.run(vec![0], 7), Turn::Yielded);
        assert!(fiber.is_suspended());
        assert_eq!(resume(&mut fiber), Turn::Finished(vec![0, 1, 2]));
        assert!(!fiber.is_suspended());
    }
    stacks.give(fiber.into_stack());
    assert_eq!(stacks.mapped(), 2);
}

#[test]
fn nobody_yields_outside_a_fiber() {
    assert!(!in_fiber());
    yield_now();
    checkpoint();
    drop(NoPreempt::enter());
    let mut fiber = Fiber::new(stacks().take().unwrap(), |inside: &mut bool| {
        *inside = in_fiber();
    });
    assert_eq!(fiber.run(false, 0), Turn::Finished(true));
    assert!(!in_fiber());
}

#[test]
fn a_raised_flag_is_seen_at_the_next_checkpoint_and_once() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |passed: &mut u32| {
        for _ in 0..3 {
            checkpoint();
            *passed += 1;
        }
    });
    attached.begin(1);
    assert_eq!(fiber.run(0, 0), Turn::Finished(3));
    attached.begin(2);
    flag.raise(2);
    assert_eq!(fiber.run(0, 0), Turn::Yielded);
    attached.begin(3);
    assert_eq!(resume(&mut fiber), Turn::Finished(3));
}

#[test]
fn a_late_flag_does_not_hit_the_next_assignment() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |_: &mut ()| checkpoint());
    // Raised before the next begins, and after.
    attached.begin(1);
    flag.raise(1);
    attached.begin(2);
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    attached.begin(3);
    flag.raise(2);
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    flag.raise(3);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
}

#[test]
fn what_is_said_beside_a_request_is_told_to_the_assignment_that_it_was_for() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |_: &mut ()| checkpoint());
    attached.begin(1);
    flag.raise_with(1, 17);
    assert_eq!(attached.granted_message(), 0, "nothing is granted yet");
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    assert_eq!(attached.granted_message(), 17);
    attached.begin(2);
    assert_eq!(attached.granted_message(), 0);
    // A turn that comes late proves nothing.
    flag.raise_with(1, 18);
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    assert_eq!(attached.granted_message(), 0);
    flag.raise(2);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    assert_eq!(attached.granted_message(), 0, "nothing was said");
}

#[test]
fn a_section_defers_the_yield_to_its_end() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |steps: &mut Vec<&str>| {
        let outer = NoPreempt::enter();
        {
            let _inner = NoPreempt::enter();
            checkpoint();
            steps.push("inner");
        }
        steps.push("outer");
        drop(outer);
        steps.push("free");
    });
    attached.begin(1);
    flag.raise(1);
    let mut seen = match fiber.run(vec![], 0) {
        Turn::Yielded => resume(&mut fiber),
        Turn::Finished(steps) => panic!("it did not yield: {steps:?}"),
    };
    let Turn::Finished(steps) = &mut seen else {
        panic!("it yielded twice")
    };
    assert_eq!(*steps, ["inner", "outer", "free"]);
}

/// Ends its section where it must yield, at the third end of a slice. Returns after the end of the section.
fn asks_thrice(told: &mut Vec<bool>) {
    let section = NoPreempt::enter();
    while !told.contains(&true) {
        let before = suspensions();
        let must_yield = section.must_yield();
        if suspensions() > before || must_yield {
            told.push(must_yield);
        }
    }
    assert!(section.must_yield(), "it is told until it yields");
    drop(section);
    assert!(!NoPreempt::enter().must_yield(), "it has yielded");
}

#[test]
fn a_section_goes_on_where_its_slice_is_renewed_outside_of_its_stack() {
    let attached = Attached::new();
    attached.self_timed(true);
    attached.answer_sections(true);
    let mut fiber = Fiber::new(stacks().take().unwrap(), asks_thrice);
    for round in 0..3 {
        attached.begin(round + 1);
        attached.set_deadline(0);
        let mut turn = fiber.run(vec![], 0);
        for is_renewed in [true, true, false] {
            assert_eq!(turn, Turn::Yielded);
            assert!(fiber.asks());
            attached.set_deadline(if is_renewed { 0 } else { u64::MAX });
            fiber.answer(is_renewed);
            turn = resume(&mut fiber);
        }
        assert_eq!(turn, Turn::Yielded, "at the section's end");
        assert!(!fiber.asks());
        assert_eq!(resume(&mut fiber), Turn::Finished(vec![false, false, true]));
    }
    // Whoever does not answer is asked nothing.
    attached.answer_sections(false);
    attached.set_deadline(0);
    assert_eq!(fiber.run(vec![], 0), Turn::Yielded);
    assert!(!fiber.asks());
    assert_eq!(resume(&mut fiber), Turn::Finished(vec![true]));
    attached.self_timed(false);
}

/// A probe within the section meets the slice's end before the section asks.
#[test]
fn a_section_that_met_the_end_of_its_slice_goes_on_where_that_is_renewed() {
    unsafe extern "C" fn renew(_: *mut (), _tsc: u64) -> bool {
        true
    }

    let attached = Attached::new();
    attached.self_timed(true);
    let mut fiber = Fiber::new(stacks().take().unwrap(), |must_yield: &mut bool| {
        let section = NoPreempt::enter();
        for _ in 0..=2 * MOST_SKIPPED {
            checkpoint();
        }
        *must_yield = section.must_yield();
    });
    attached.begin(1);
    attached.set_deadline(0);
    // SAFETY: the function uses no argument.
    unsafe { attached.set_renewal(Some(renew), std::ptr::null_mut()) };
    assert_eq!(fiber.run(false, 0), Turn::Finished(false));
    assert!(fiber.take_held().is_none(), "it delayed nobody");
    attached.self_timed(false);
}

/// As above, where whoever runs the fiber answers.
#[test]
fn a_section_that_met_the_end_of_its_slice_asks_whether_that_is_renewed() {
    let attached = Attached::new();
    attached.self_timed(true);
    attached.answer_sections(true);
    let mut fiber = Fiber::new(stacks().take().unwrap(), |must_yield: &mut bool| {
        let section = NoPreempt::enter();
        for _ in 0..=2 * MOST_SKIPPED {
            checkpoint();
        }
        *must_yield = section.must_yield();
    });
    for is_renewed in [true, false] {
        attached.begin(1);
        attached.set_deadline(0);
        assert_eq!(fiber.run(false, 0), Turn::Yielded);
        assert!(fiber.asks());
        fiber.answer(is_renewed);
        let mut turn = resume(&mut fiber);
        if !is_renewed {
            assert_eq!(turn, Turn::Yielded);
            turn = resume(&mut fiber);
        }
        assert_eq!(turn, Turn::Finished(!is_renewed));
        assert_eq!(fiber.take_held().is_none(), is_renewed);
    }
    attached.self_timed(false);
}

/// Takes steps in a section, ends it where it must yield, and goes on in the next.
fn in_sections(steps: &mut Vec<&str>) {
    let section = NoPreempt::enter();
    {
        let inner = NoPreempt::enter();
        assert!(!inner.must_yield(), "its end does not yield");
    }
    let asked = section.must_yield();
    assert_eq!(section.must_yield(), asked, "it is asked until it yields");
    steps.push(if asked { "asked" } else { "not asked" });
    drop(section);
    steps.push("free");
    assert!(!NoPreempt::enter().must_yield(), "it has yielded");
}

#[test]
fn a_section_that_looks_knows_that_its_end_yields() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), in_sections);
    attached.begin(1);
    assert_eq!(
        fiber.run(vec![], 0),
        Turn::Finished(vec!["not asked", "free"])
    );
    flag.raise(1);
    assert_eq!(fiber.run(vec![], 0), Turn::Yielded);
    assert_eq!(fiber.take_held(), None, "it gave way at once");
    assert_eq!(resume(&mut fiber), Turn::Finished(vec!["asked", "free"]));
    // An order for an assignment that is over is none.
    attached.begin(2);
    flag.raise(1);
    assert_eq!(
        fiber.run(vec![], 0),
        Turn::Finished(vec!["not asked", "free"])
    );
    // Past a deadline, too.
    attached.self_timed(true);
    attached.begin(3);
    attached.set_deadline(u64::MAX / 2);
    assert_eq!(
        fiber.run(vec![], 0),
        Turn::Finished(vec!["not asked", "free"])
    );
    attached.set_deadline(1);
    assert_eq!(fiber.run(vec![], 0), Turn::Yielded);
    assert_eq!(resume(&mut fiber), Turn::Finished(vec!["asked", "free"]));
}

#[test]
fn a_self_timed_thread_yields_past_its_deadline_only() {
    let attached = Attached::new();
    attached.self_timed(true);
    let mut fiber = Fiber::new(stacks().take().unwrap(), |_: &mut ()| checkpoint());
    attached.begin(1);
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    attached.begin(2);
    attached.set_deadline(1);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
    // It was used up.
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    // It can be asked nonetheless.
    attached.begin(3);
    attached.flag().raise(3);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
}

#[test]
fn a_self_timed_thread_skips_few_probes() {
    let attached = Attached::new();
    let clock = Clock::global();
    if !clock.is_cheap() {
        println!("SKIPPED a_self_timed_thread_skips_few_probes: no usable time-stamp counter");
        return;
    }
    attached.self_timed(true);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |deadline: &mut u64| {
        let before = suspensions();
        let mut late = 0;
        while suspensions() == before {
            late += u64::from(clock.ticks() >= *deadline);
            checkpoint();
        }
        *deadline = late;
    });
    for (epoch, ticks) in [(1, 0), (2, 10_000), (3, 300_000)] {
        attached.begin(epoch);
        let deadline = clock.ticks() + ticks;
        attached.set_deadline(deadline);
        assert_eq!(fiber.run(deadline, 0), Turn::Yielded);
        let Turn::Finished(late) = resume(&mut fiber) else {
            panic!("it yielded twice")
        };
        assert!(
            late <= u64::from(MOST_SKIPPED) + 1,
            "{late} probes were late"
        );
    }
}

#[test]
fn a_panic_goes_on_at_the_caller_and_spends_the_fiber() {
    let stacks = stacks();
    let mut fiber = Fiber::new(stacks.take().unwrap(), |job: &mut Arc<()>| {
        assert!(Arc::strong_count(job) > 2, "as this test wants it");
    });
    let job = Arc::new(());
    let third = Arc::clone(&job);
    assert!(matches!(fiber.run(Arc::clone(&job), 0), Turn::Finished(_)));
    drop(third);
    let run = catch_unwind(AssertUnwindSafe(|| fiber.run(Arc::clone(&job), 0)));
    assert!(run.is_err() && !in_fiber());
    assert_eq!(Arc::strong_count(&job), 1, "the job was dropped");
    assert!(catch_unwind(AssertUnwindSafe(|| fiber.run(Arc::clone(&job), 0))).is_err());
    stacks.give(fiber.into_stack());
}

#[test]
fn the_body_is_dropped_once_whether_it_ran_or_not() {
    for runs in 0..3 {
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        let mut fiber = Fiber::new(stacks().take().unwrap(), move |_: &mut ()| {
            assert_eq!(Arc::strong_count(&inside), 2);
        });
        for _ in 0..runs {
            fiber.run((), 0);
        }
        drop(fiber);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[test]
fn a_suspended_fiber_is_abandoned() {
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |_: &mut ()| {
        let _on_the_stack = Arc::clone(&inside);
        yield_now();
    });
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    let before = abandoned();
    drop(fiber);
    assert!(abandoned() > before);
    assert_eq!(Arc::strong_count(&held), 3, "leaked");
}

#[test]
fn a_fiber_suspended_by_a_call_can_be_unwound() {
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |job: &mut Arc<()>| {
        let _frame = Arc::clone(&inside);
        assert_eq!(Arc::strong_count(job), 4);
        yield_now();
    });
    assert_eq!(fiber.run(Arc::clone(&held), 0), Turn::Yielded);
    // SAFETY: the one frame is Rust's.
    let stack = unsafe { fiber.unwind() };
    assert!(stack.is_ok());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_fiber_suspended_by_a_probe_cannot_be_unwound() {
    let attached = Attached::new();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |_: &mut ()| checkpoint());
    attached.begin(1);
    attached.flag().raise(1);
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    // SAFETY: it refuses.
    let Err(mut fiber) = (unsafe { fiber.unwind() }) else {
        panic!("a probe was unwound")
    };
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
}

#[test]
fn fibers_nest() {
    let stacks = Arc::new(stacks());
    let own = Arc::clone(&stacks);
    let mut outer = Fiber::new(stacks.take().unwrap(), move |sum: &mut u32| {
        let mut inner = Fiber::new(own.take().unwrap(), |job: &mut u32| {
            yield_now();
            *job += 1;
        });
        assert_eq!(inner.run(1, 0), Turn::Yielded);
        yield_now();
        let Turn::Finished(two) = resume(&mut inner) else {
            panic!("it yields once")
        };
        *sum += two;
        own.give(inner.into_stack());
    });
    assert_eq!(outer.run(40, 0), Turn::Yielded);
    assert_eq!(resume(&mut outer), Turn::Finished(42));
}

#[test]
fn a_cache_gives_all_back() {
    let pool = Arc::new(stacks());
    let mut cache = StackCache::new(Arc::clone(&pool));
    let taken: Vec<_> = (0..40).map(|_| cache.take().unwrap()).collect();
    assert_eq!(pool.mapped(), 40);
    taken.into_iter().for_each(|stack| cache.give(stack));
    drop(cache);
    for _ in 0..40 {
        std::mem::forget(pool.take().unwrap());
    }
    assert_eq!(pool.mapped(), 40);
}

#[test]
fn a_size_that_would_overflow_is_refused() {
    for bytes in [MAX_STACK_BYTES + 1, usize::MAX - 5000, usize::MAX] {
        let error = Stacks::new(bytes, 1).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("choose a smaller"), "{error}");
    }
    let most = Stacks::new(MAX_STACK_BYTES, 1).unwrap();
    let mut fiber = Fiber::new(most.take().unwrap(), |job: &mut u32| *job += 1);
    assert_eq!(fiber.run(1, 0), Turn::Finished(2));
    let error = Stacks::new(64 << 10, usize::MAX).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
}

#[test]
fn a_request_that_met_a_section_is_noted_for_that_turn() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |in_section: &mut bool| {
        let section = in_section.then(NoPreempt::enter);
        checkpoint();
        checkpoint();
        drop(section);
    });
    let before = Clock::global().ticks();
    attached.begin(1);
    flag.raise(1);
    assert_eq!(fiber.run(true, 0), Turn::Yielded);
    let held = fiber.take_held().expect("it was asked in a section");
    assert_eq!(held.section, Section::NoPreempt);
    assert!((before..=Clock::global().ticks()).contains(&held.since_tsc));
    assert_eq!(fiber.take_held(), None, "it is told once");
    assert_eq!(resume(&mut fiber), Turn::Finished(true));
    assert_eq!(fiber.take_held(), None);
    attached.begin(2);
    flag.raise(2);
    assert_eq!(fiber.run(false, 0), Turn::Yielded);
    assert_eq!(fiber.take_held(), None, "nothing held it");
    assert_eq!(resume(&mut fiber), Turn::Finished(false));
}

/// A worker that times itself is told by its probes that a request goes on, and that time is no work of the request: the same work is done as where nobody asks.
#[test]
fn what_a_renewal_takes_is_not_counted_as_work() {
    const ROUND: u64 = 10;
    const RENEWAL: u64 = 1_000;
    const WORK: u64 = 5_000;
    static NOW: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn renew(renewals: *mut (), _tsc: u64) -> bool {
        // SAFETY: a number that outlives the fiber's turn, as `set_renewal` is told below.
        unsafe { *renewals.cast::<u64>() += 1 };
        let now = NOW.fetch_add(RENEWAL, Relaxed) + RENEWAL;
        ATTACHED.with(|attached| attached.move_deadline(now + 100));
        true
    }

    thread_local! {
        static ATTACHED: Attached = Attached::new();
    }

    let mut fiber = Fiber::new(stacks().take().unwrap(), |rounds: &mut u64| {
        let mut meter = WorkMeter::begin(NOW.load(Relaxed));
        while meter.done() < WORK {
            let ticks = NOW.fetch_add(ROUND, Relaxed) + ROUND;
            checkpoint_at(ticks);
            meter.look(NOW.load(Relaxed));
            *rounds += 1;
        }
    });
    let mut renewals = 0_u64;
    ATTACHED.with(|attached| {
        attached.self_timed(true);
        attached.set_clock(Some(|| NOW.load(Relaxed)));
        attached.begin(1);
        attached.set_deadline(100);
        // SAFETY: the number outlives the fiber's only turn.
        unsafe { attached.set_renewal(Some(renew), (&raw mut renewals).cast()) };
    });
    assert_eq!(fiber.run(0, 0), Turn::Finished(WORK / ROUND));
    assert!(renewals >= WORK / 100 - 1, "{renewals}");
    assert_eq!(NOW.load(Relaxed), WORK + renewals * RENEWAL);
}

#[test]
fn a_process_ends_though_its_first_thread_has_flags() {
    // SAFETY: the child, whose first thread this is, ends in any case; the parent waits for it.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(10);
            let attached = Attached::new();
            let _flag = attached.flag();
            std::process::exit(7);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    // The address sanitizer looks for leaks then, and takes what the parent's other threads have for some.
    let is_told = libc::WEXITSTATUS(status) == 7 || cfg!(headway_asan);
    assert!(libc::WIFEXITED(status) && is_told, "{status:#x}");
}
