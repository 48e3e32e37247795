//! Fibers that own a thread's state: what code keeps for a thread stays the fiber's own, whoever resumes it.

#![expect(unsafe_code, reason = "asks the C library")]

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once, OnceLock, mpsc};
use std::thread;
use std::time::Instant;

use common::jobs::{Job, LIMIT, STACK_BYTES, fiber};
use headway_fiber::{
    Attached, Fiber, SendFiber, Stacks, Turn, checkpoint, in_fiber, suspensions, yield_now,
};

fn donors(many: usize) -> Stacks {
    Stacks::of_donors(STACK_BYTES, many).expect("threads can be made")
}

/// Runs `job` for each number on a fiber of its own, all in turns, by `workers` threads that take whichever is next.
fn in_turns(many: usize, workers: usize, job: impl Fn(usize) + Send + Sync + 'static) {
    let stacks = donors(many);
    let job = Arc::new(job);
    let (put, take) = mpsc::channel::<(SendFiber<Option<Job>>, Option<Job>)>();
    for number in 0..many {
        let job = Arc::clone(&job);
        let first: Job = Box::new(move || job(number));
        put.send((fiber(&stacks), Some(first))).unwrap();
    }
    let take = Mutex::new(take);
    let left = AtomicUsize::new(many);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (put, take, left) = (put.clone(), &take, &left);
            scope.spawn(move || {
                let begun = Instant::now();
                while left.load(Ordering::Acquire) > 0 {
                    assert!(begun.elapsed() < LIMIT, "the fibers go on");
                    let next = take.lock().unwrap().try_recv();
                    let Ok((mut fiber, first)) = next else {
                        thread::yield_now();
                        continue;
                    };
                    let turn = match first {
                        Some(first) => fiber.run(Some(first), 0),
                        None => fiber.resume(),
                    };
                    match turn {
                        Turn::Yielded => put.send((fiber, None)).unwrap(),
                        Turn::Finished(_) => {
                            left.fetch_sub(1, Ordering::AcqRel);
                        }
                    }
                }
            });
        }
    });
}

thread_local! {
    static OWN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn thread_local_variables_are_the_fibers() {
    in_turns(8, 2, |number| {
        for round in 0..200 {
            OWN.with_borrow_mut(|own| own.push(number));
            yield_now();
            // Across a suspension inside `with`, too: the borrow is the fiber's.
            OWN.with_borrow(|own| {
                yield_now();
                assert_eq!(own.len(), round + 1);
                assert!(own.iter().all(|entry| *entry == number));
            });
        }
    });
}

#[test]
fn identity_and_errno_are_the_fibers() {
    in_turns(8, 2, |number| {
        // SAFETY: asks the C library; `errno` is a variable of the thread.
        unsafe {
            let (me, named) = (libc::pthread_self(), thread::current().id());
            for _ in 0..200 {
                *libc::__errno_location() = number as i32;
                yield_now();
                assert_eq!(*libc::__errno_location(), number as i32);
                assert_eq!((libc::pthread_self(), thread::current().id()), (me, named));
            }
        }
    });
}

#[test]
fn the_c_library_knows_the_fibers_stack() {
    in_turns(2, 1, |_| {
        // SAFETY: asks for the calling thread.
        let (low, bytes) = unsafe {
            let mut attributes = std::mem::zeroed();
            assert_eq!(
                libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes),
                0
            );
            let (mut low, mut bytes) = (std::ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
            (low as usize, bytes)
        };
        let here = &raw const low as usize;
        assert!((low..low + bytes).contains(&here));
        yield_now();
    });
}

#[test]
fn a_once_that_waits_inside_is_not_entered_twice() {
    in_turns(16, 2, |number| {
        static CELLS: LazyLock<Vec<OnceLock<usize>>> =
            LazyLock::new(|| (0..100).map(|_| OnceLock::new()).collect());
        // Others would wait for the holder in the kernel if it yielded inside: see the test at home.
        for cell in &*CELLS {
            let value = *cell.get_or_init(|| number);
            yield_now();
            assert_eq!(cell.get(), Some(&value));
        }
    });
}

#[test]
fn a_fiber_that_unwinds_may_be_suspended() {
    struct YieldsAtTheEnd;
    impl Drop for YieldsAtTheEnd {
        fn drop(&mut self) {
            assert!(thread::panicking());
            let before = suspensions();
            yield_now();
            assert_eq!(suspensions(), before + 1, "it is its own panic");
            assert!(thread::panicking());
        }
    }
    in_turns(4, 2, |number| {
        for _ in 0..100 {
            assert!(!thread::panicking());
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _yields = YieldsAtTheEnd;
                std::panic::resume_unwind(Box::new(number));
            }));
            let number_caught = caught.unwrap_err().downcast::<usize>().unwrap();
            assert_eq!(*number_caught, number);
        }
    });
}

#[test]
fn a_panic_goes_on_in_who_resumes() {
    let stacks = donors(1);
    let mut fiber = fiber(&stacks);
    let job: Job = Box::new(|| {
        yield_now();
        std::panic::resume_unwind(Box::new(7_u32));
    });
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    let caught = catch_unwind(AssertUnwindSafe(|| drop(fiber.resume()))).unwrap_err();
    assert_eq!(*caught.downcast::<u32>().unwrap(), 7);
    assert!(!thread::panicking());
    assert!(!in_fiber());
}

#[test]
fn variables_stay_for_the_next_job_and_end_with_the_donor() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted(Cell<u32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local!(static JOBS: Counted = const { Counted(Cell::new(0)) });
    let stacks = donors(1);
    let seen = Arc::new(AtomicU64::new(0));
    let mut fiber = fiber(&stacks);
    for jobs in 1..=3 {
        let of_job = Arc::clone(&seen);
        let job: Job = Box::new(move || {
            JOBS.with(|jobs| {
                jobs.0.set(jobs.0.get() + 1);
                of_job.store(u64::from(jobs.0.get()), Ordering::Relaxed);
            });
        });
        assert!(matches!(fiber.run(Some(job), 0), Turn::Finished(_)));
        assert_eq!(seen.load(Ordering::Relaxed), jobs);
    }
    stacks.give(fiber.into_inner().into_stack());
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    drop(stacks);
    // It ends once nobody in the process can flag its line: other tests do, meanwhile.
    let begun = Instant::now();
    while DROPPED.load(Ordering::Relaxed) != 1 {
        assert!(
            begun.elapsed() < LIMIT,
            "the donor ends, and drops its variables"
        );
        thread::yield_now();
    }
    assert_eq!(JOBS.with(|jobs| jobs.0.get()), 0, "this thread's own");
}

#[test]
fn another_threads_flag_reaches_the_fiber_that_runs() {
    let attached = Attached::new();
    let flag = attached.flag();
    let stacks = donors(2);
    let (mut first, mut second) = (fiber(&stacks), fiber(&stacks));
    let job = || -> Job {
        Box::new(|| {
            let before = suspensions();
            while suspensions() == before {
                checkpoint();
            }
        })
    };
    // Each is asked while it runs; then both go on, in turns, and end: nobody asks them.
    let mut epoch = 0;
    for fiber in [&mut first, &mut second] {
        epoch += 1;
        attached.begin_on(fiber, epoch);
        thread::scope(|scope| {
            scope.spawn(|| flag.raise_with(epoch, 70 + epoch));
            assert!(matches!(fiber.run(Some(job()), 0), Turn::Yielded));
        });
        assert_eq!(attached.granted_message(), 70 + epoch);
    }
    for fiber in [&mut second, &mut first] {
        epoch += 1;
        attached.begin_on(fiber, epoch);
        flag.raise(epoch - 1);
        assert!(matches!(fiber.resume(), Turn::Finished(_)));
        assert_eq!(attached.granted_message(), 0);
    }
    drop(flag);
}

#[test]
fn a_request_that_came_before_the_turn_is_met_in_it() {
    let attached = Attached::new();
    let flag = attached.flag();
    let stacks = donors(1);
    let mut fiber = fiber(&stacks);
    for (epoch, named) in [(1, true), (2, false)] {
        // With the fiber named, and without.
        if named {
            attached.begin_on(&fiber, epoch);
        } else {
            attached.begin(epoch);
        }
        flag.raise(epoch);
        let job: Job = Box::new(checkpoint);
        assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
        assert_eq!(attached.unanswered_message(), None);
        attached.begin_on(&fiber, epoch + 10);
        assert!(matches!(fiber.resume(), Turn::Finished(_)));
    }
    drop(flag);
}

#[test]
fn a_request_that_no_probe_met_is_known_afterwards() {
    let attached = Attached::new();
    let flag = attached.flag();
    let stacks = donors(1);
    let mut fiber = fiber(&stacks);
    attached.begin_on(&fiber, 5);
    flag.raise_with(5, 99);
    let job: Job = Box::new(|| {});
    assert!(matches!(fiber.run(Some(job), 0), Turn::Finished(_)));
    assert_eq!(attached.unanswered_message(), Some(99));
    attached.begin(6);
    assert_eq!(attached.unanswered_message(), None);
    drop(flag);
}

#[test]
fn a_slice_ends_by_the_clock() {
    let attached = Attached::new();
    attached.self_timed(true);
    let stacks = donors(2);
    let (mut first, mut second) = (fiber(&stacks), fiber(&stacks));
    let job = || -> Job {
        Box::new(|| {
            let before = suspensions();
            while suspensions() < before + 3 {
                checkpoint();
            }
        })
    };
    let mut first_job = Some(job());
    let mut second_job = Some(job());
    for turn in 0..4 {
        for (fiber, job) in [(&mut first, &mut first_job), (&mut second, &mut second_job)] {
            attached.begin_on(fiber, turn + 1);
            // SAFETY: every x86-64 processor has the instruction.
            attached.set_deadline(unsafe { std::arch::x86_64::_rdtsc() } + 10_000);
            let turned = match job.take() {
                Some(job) => fiber.run(Some(job), 0),
                None => fiber.resume(),
            };
            assert_eq!(matches!(turned, Turn::Finished(_)), turn == 3);
        }
    }
    attached.self_timed(false);
}

#[test]
fn the_holder_of_a_lock_goes_on_at_home() {
    let stacks = donors(2);
    let (mut holder, mut waiter) = (fiber(&stacks), fiber(&stacks));
    let lock = Arc::new(Mutex::new(0));
    let held = Arc::clone(&lock);
    let holds: Job = Box::new(move || {
        let mut held = held.lock().unwrap();
        yield_now();
        *held += 1;
    });
    assert!(matches!(holder.run(Some(holds), 0), Turn::Yielded));
    let wanted = Arc::clone(&lock);
    let waits: Job = Box::new(move || *wanted.lock().unwrap() += 10);
    thread::scope(|scope| {
        // This thread would sleep in the kernel for ever.
        let worker = scope.spawn(move || matches!(waiter.run(Some(waits), 0), Turn::Finished(_)));
        holder.run_at_home();
        assert!(worker.join().unwrap());
    });
    let begun = Instant::now();
    let turn = loop {
        if let Some(turn) = holder.turn_at_home() {
            break turn;
        }
        assert!(begun.elapsed() < LIMIT);
        thread::yield_now();
    };
    assert!(matches!(turn, Turn::Finished(_)));
    assert_eq!(*lock.lock().unwrap(), 11);
}

#[test]
fn a_fiber_comes_and_goes_between_home_and_workers() {
    let stacks = donors(1);
    let mut fiber = fiber(&stacks);
    let job: Job = Box::new(|| {
        for number in 0..1_000 {
            OWN.with_borrow_mut(|own| own.push(number));
            yield_now();
        }
        OWN.with_borrow_mut(|own| assert_eq!(own.drain(..).len(), 1_000));
    });
    let mut turn = fiber.run(Some(job), 0);
    let begun = Instant::now();
    let mut at_home = false;
    while let Turn::Yielded = turn {
        at_home = !at_home;
        turn = if at_home {
            fiber.run_at_home();
            loop {
                assert!(begun.elapsed() < LIMIT);
                match fiber.turn_at_home() {
                    Some(turn) => break turn,
                    None => thread::yield_now(),
                }
            }
        } else {
            fiber.resume()
        };
    }
}

#[test]
fn who_asks_for_the_processor_gets_that_of_the_worker() {
    in_turns(2, 2, |_| {
        for _ in 0..1_000 {
            // SAFETY: asks the kernel twice; the thread may move in between, so it is asked until both agree.
            let agrees = (0..1_000).any(|_| unsafe {
                let mut processor: libc::c_uint = 0;
                libc::syscall(
                    libc::SYS_getcpu,
                    &raw mut processor,
                    std::ptr::null_mut::<u32>(),
                    0,
                );
                libc::sched_getcpu() == processor as i32
            });
            assert!(agrees);
            yield_now();
        }
    });
}

#[test]
fn what_runs_inside_a_fiber_is_a_fiber_of_its_own() {
    let stacks = donors(2);
    let inner_stacks = Stacks::new(64 << 10, 1).unwrap();
    let inner_donor = Mutex::new(Some(fiber(&stacks)));
    let mut outer = fiber(&stacks);
    let job: Job = Box::new(move || {
        let mut plain = Fiber::new(inner_stacks.take().unwrap(), |(): &mut ()| {
            OWN.with_borrow_mut(|own| own.push(1));
            yield_now();
        });
        assert!(matches!(plain.run((), 0), Turn::Yielded));
        OWN.with_borrow_mut(|own| assert_eq!(own.drain(..).len(), 1, "the outer's"));
        yield_now();
        // SAFETY: no destructor of a thread-local variable; the same fiber runs it again.
        assert!(matches!(unsafe { plain.resume() }, Turn::Finished(())));
        let mut donor = inner_donor.lock().unwrap().take().unwrap();
        let job: Job = Box::new(|| {
            OWN.with_borrow(|own| assert!(own.is_empty()));
            OWN.with_borrow_mut(|own| own.push(2));
            yield_now();
        });
        assert!(matches!(donor.run(Some(job), 0), Turn::Yielded));
        OWN.with_borrow(|own| assert!(own.is_empty()));
        assert!(matches!(donor.resume(), Turn::Finished(_)));
    });
    assert!(matches!(outer.run(Some(job), 0), Turn::Yielded));
    assert!(matches!(outer.resume(), Turn::Finished(_)));
}

#[test]
fn a_forked_child_goes_on_as_a_plain_thread_and_drops_what_it_has() {
    let stacks = donors(2);
    static INIT: Once = Once::new();
    INIT.call_once(|| {});
    let mut fiber = fiber(&stacks);
    let (tell, hear) = mpsc::channel();
    let job: Job = Box::new(move || {
        // SAFETY: the child only computes and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                yield_now(); // without an effect
                OWN.with_borrow_mut(|own| own.push(1));
                libc::_exit(OWN.with_borrow(Vec::len) as i32);
            }
            let mut status = 0;
            while libc::waitpid(child, &raw mut status, 0) != child {}
            tell.send(libc::WEXITSTATUS(status)).unwrap();
        }
    });
    let attached = Attached::new();
    attached.begin_on(&fiber, 1);
    assert!(matches!(fiber.run(Some(job), 0), Turn::Finished(_)));
    assert_eq!(hear.recv().unwrap(), 1);
    drop(attached);
}

/// Exceptions that floating-point code raises are the fiber's own, with a thread's state and without.
#[test]
fn raised_exceptions_of_floating_point_are_the_fibers() {
    /// `FE_INVALID`, `FE_DIVBYZERO`, `FE_OVERFLOW`, `FE_INEXACT` (`fenv.h`, x86).
    const RAISED: [i32; 4] = [1, 4, 8, 32];
    unsafe extern "C" {
        fn feclearexcept(exceptions: i32) -> i32;
        fn feraiseexcept(exceptions: i32) -> i32;
        fn fetestexcept(exceptions: i32) -> i32;
    }
    let attached = Attached::new();
    let flag = attached.flag();
    let of_donors = donors(4);
    let plain = Stacks::new(64 << 10, 4).unwrap();
    for stacks in [&of_donors, &plain] {
        let body = |raised: &mut i32| {
            // SAFETY: the C library's, for the calling thread.
            unsafe {
                feclearexcept(61);
                feraiseexcept(*raised);
                for _ in 0..10 {
                    checkpoint();
                    assert_eq!(fetestexcept(61), *raised);
                }
            }
        };
        let mut fibers: Vec<_> = RAISED
            .iter()
            .map(|raised| (Fiber::new(stacks.take().unwrap(), body), Some(*raised)))
            .collect();
        let (mut epoch, mut left) = (0, fibers.len());
        while left > 0 {
            left = fibers.len();
            for (fiber, raised) in &mut fibers {
                if raised.is_none() && !fiber.is_suspended() {
                    left -= 1;
                    continue;
                }
                epoch += 1;
                attached.begin(epoch);
                flag.raise(epoch);
                let _turn = match raised.take() {
                    Some(raised) => fiber.run(raised, 0),
                    // SAFETY: no destructor of a thread-local variable calls this.
                    None => unsafe { fiber.resume() },
                };
            }
        }
        // SAFETY: the C library's.
        assert_eq!(unsafe { fetestexcept(29) }, 0, "nothing is left here");
    }
    drop(flag);
}

#[inline(never)]
fn innermost_of_a_suspended_job() {
    yield_now();
    std::hint::black_box(1);
}

#[inline(never)]
fn middle_of_a_suspended_job() {
    innermost_of_a_suspended_job();
    std::hint::black_box(2);
}

#[test]
#[ignore = "run by a_debugger_shows_a_suspended_job_in_its_donors_thread"]
fn debugged() {
    let stacks = donors(1);
    let mut fiber = fiber(&stacks);
    let job: Job = Box::new(middle_of_a_suspended_job);
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    // SAFETY: the debugger stops here.
    unsafe { libc::raise(libc::SIGTRAP) };
    assert!(matches!(fiber.resume(), Turn::Finished(_)));
}

/// Without a script: the donor's frame says that the suspended job's last one called it.
#[test]
fn a_debugger_shows_a_suspended_job_in_its_donors_thread() {
    let subject = std::env::current_exe().unwrap();
    let mut gdb = std::process::Command::new("gdb");
    gdb.args(["-batch", "-nx", "-ex", "run", "-ex", "thread apply all bt"])
        .arg("--args")
        .arg(subject)
        .args(["--exact", "debugged", "--ignored", "--nocapture"]);
    let said = match gdb.output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            eprintln!("SKIPPED: gdb does not start: {error} (apt-get install gdb)");
            return;
        }
    };
    if !said.contains("SIGTRAP") {
        eprintln!("SKIPPED: gdb may not trace here: {said}");
        return;
    }
    let donor = said
        .split("Thread ")
        .find(|thread| thread.contains("headway-donor"));
    let donor = donor.unwrap_or_else(|| panic!("no thread of a donor: {said}"));
    let innermost = donor.find("innermost_of_a_suspended_job");
    let middle = donor.find("middle_of_a_suspended_job");
    assert!(innermost.is_some() && innermost < middle, "{said}");
}
