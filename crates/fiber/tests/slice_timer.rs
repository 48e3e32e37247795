//! Slices whose end a timer of the kernel's announces. A program of its own: it installs signal handlers, forks, and starts itself anew.
#![expect(unsafe_code, reason = "resumes fibers, reads a thread's line, forks")]

mod common;

use std::arch::asm;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use headway_fiber::abi::{__headway_preempt, SELF_TIMED};
use headway_fiber::{Attached, Fiber, TimerCost, Turn, checkpoint};
use headway_machine::Clock;

use common::{resume, stacks};

/// Far more than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Says to this program, started anew, which part of which test it is.
const PART: &str = "HEADWAY_TEST_SLICE_TIMER";

/// The word that probes compare with 0.
fn flag() -> u64 {
    let word: u64;
    // SAFETY: reads this thread's own line.
    unsafe {
        asm!("mov {0}, qword ptr [rip + {1}@gottpoff]", "mov {0}, qword ptr fs:[{0}]", out(reg) word, sym __headway_preempt,
            options(nostack, preserves_flags));
    }
    word
}

fn by_timer() -> Attached {
    let attached = Attached::new();
    attached.self_timed(true);
    attached.raise_by_timer(Clock::global()).unwrap();
    attached
}

/// What is long enough for a timer, ticks.
fn worth_ticks() -> u64 {
    Clock::global().ticks_in(TimerCost::measured().unwrap().worth_ns()) + 1
}

/// Counts the probes that find the flag down, and probes until a minute is over.
fn probing() -> Fiber<Arc<AtomicU64>> {
    Fiber::new(stacks().take().unwrap(), |down: &mut Arc<AtomicU64>| {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            down.fetch_add(u64::from(flag() == 0), Relaxed);
            checkpoint();
        }
    })
}

fn yielded<J>(turn: &Turn<J>) -> bool {
    matches!(turn, Turn::Yielded)
}

/// Longer than any test.
fn hour_ticks() -> u64 {
    Clock::global().ticks_in(3_600_000_000_000)
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_timer_raises_the_flag_that_ends_a_long_slice() {
    let (clock, attached, mut fiber) = (Clock::global(), by_timer(), probing());
    let slice_ticks = 8 * worth_ticks();
    let down = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let (mut epoch, mut with_timer) = (0, 0);
    // Where the machine stops the thread, a slice may be over before its timer is set.
    while with_timer < 3 && start.elapsed() < PATIENCE {
        epoch += 1;
        let down_before = down.load(Relaxed);
        attached.begin(epoch);
        let begin = clock.ticks();
        attached.begin_slice(begin, slice_ticks);
        assert_eq!(
            flag(),
            SELF_TIMED,
            "a request that may be short sets no timer"
        );
        let mut turn = if epoch == 1 {
            fiber.run(Arc::clone(&down), 0)
        } else {
            resume(&mut fiber)
        };
        let mut timers = 0;
        while attached.slice_goes_on(clock.ticks()) {
            timers += 1;
            turn = resume(&mut fiber);
        }
        assert!(yielded(&turn), "the flag stayed down for a minute");
        assert_eq!(flag(), SELF_TIMED);
        assert!(timers <= 1, "{timers}");
        assert!(clock.ticks() - begin >= slice_ticks);
        with_timer += u32::from(timers == 1 && down.load(Relaxed) > down_before);
    }
    assert_eq!(with_timer, 3, "of {epoch}");
    // What is long already has a timer from the start of its next slice.
    attached.extend_slice(clock.ticks(), hour_ticks());
    assert_eq!(flag(), 0);
    attached.extend_slice(clock.ticks(), slice_ticks);
    assert!(yielded(&resume(&mut fiber)));
    assert!(!attached.slice_goes_on(clock.ticks()));
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_request_without_a_slice_takes_no_probe() {
    let (attached, mut fiber) = (by_timer(), probing());
    attached.begin(1);
    attached.begin_slice(Clock::global().ticks(), 0);
    assert!(yielded(&fiber.run(Arc::default(), 0)));
    attached.begin(2);
    attached.no_slice();
    let mut short = Fiber::new(stacks().take().unwrap(), |taken: &mut u64| {
        for _ in 0..1000 {
            *taken += u64::from(flag() != 0);
            checkpoint();
        }
    });
    assert_eq!(short.run(0, 0), Turn::Finished(0));
    // The next one has a slice again.
    attached.begin(3);
    attached.begin_slice(Clock::global().ticks(), 0);
    assert_eq!(flag(), SELF_TIMED);
    assert!(yielded(&resume(&mut fiber)));
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_slice_that_is_too_short_for_a_timer_ends_without() {
    let (clock, attached, mut fiber) = (Clock::global(), by_timer(), probing());
    let slice_ticks = worth_ticks() / 2;
    attached.begin(1);
    let begin = clock.ticks();
    attached.begin_slice(begin, slice_ticks);
    assert!(yielded(&fiber.run(Arc::default(), 0)));
    assert!(!attached.slice_goes_on(clock.ticks()));
    assert!(clock.ticks() - begin >= slice_ticks);
    attached.extend_slice(clock.ticks(), slice_ticks);
    assert_eq!(flag(), SELF_TIMED);
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn another_threads_request_is_heard_while_the_flag_is_down() {
    let (clock, attached, mut fiber) = (Clock::global(), by_timer(), probing());
    let flag_of_thread = attached.flag();
    attached.begin(7);
    attached.begin_slice(clock.ticks(), u64::MAX / 4);
    thread::scope(|scope| {
        assert!(yielded(&fiber.run(Arc::default(), 0)));
        assert!(attached.slice_goes_on(clock.ticks()));
        scope.spawn(move || flag_of_thread.raise_with(7, 1));
        assert!(yielded(&resume(&mut fiber)));
        assert_eq!(attached.granted_message(), 1);
        assert!(!attached.slice_goes_on(clock.ticks()), "it is to yield");
    });
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_system_call_goes_on_after_the_timers_signal() {
    let attached = by_timer();
    attached.begin(1);
    let (mut reader, mut writer) = io::pipe().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(100));
            writer.write_all(b"x").unwrap();
        });
        let clock = Clock::global();
        attached.extend_slice(clock.ticks(), clock.ticks_in(20_000_000));
        let mut byte = [0];
        // Not `read_exact`, which would hide an interruption.
        assert_eq!(reader.read(&mut byte).unwrap(), 1);
    });
    assert_eq!(flag(), SELF_TIMED, "the signal came meanwhile");
}

/// Exit codes of the child.
const WOKEN: i32 = 1;
const RAISED_BEFORE: i32 = 2;

/// Sleeps for longer than its parent's timer is set, and exits with 0 if nothing came.
fn child_exits() -> ! {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };
    // SAFETY: all that the child does.
    unsafe {
        if flag() != 0 {
            libc::_exit(RAISED_BEFORE);
        }
        let slept = libc::nanosleep(&raw const pause, std::ptr::null_mut());
        let is_woken = slept != 0 || flag() != 0;
        libc::_exit(if is_woken { WOKEN } else { 0 });
    }
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_child_inherits_no_timer() {
    let (clock, attached) = (Clock::global(), by_timer());
    attached.begin(1);
    let start = Instant::now();
    loop {
        attached.extend_slice(clock.ticks(), clock.ticks_in(50_000_000));
        // SAFETY: the child only sleeps, reads its line and exits.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", io::Error::last_os_error());
        if child == 0 {
            child_exits();
        }
        let mut status = -1;
        // SAFETY: waits for this child.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {
            let why = io::Error::last_os_error();
            assert_eq!(why.kind(), io::ErrorKind::Interrupted, "{why}");
        }
        assert!(libc::WIFEXITED(status));
        match libc::WEXITSTATUS(status) {
            0 => break,
            RAISED_BEFORE => assert!(start.elapsed() < PATIENCE),
            other => panic!("{other}"),
        }
    }
    assert_eq!(flag(), SELF_TIMED, "the parent kept its own");
}

/// Starts a test of this program anew, in a process of its own, where [`PART`] is set.
fn anew(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(PART, "1");
    command
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_program_that_replaces_this_one_has_no_timer() {
    if env::var_os(PART).is_none() {
        let done = anew("a_program_that_replaces_this_one_has_no_timer")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        return;
    }
    let attached = by_timer();
    attached.begin(1);
    attached.extend_slice(
        Clock::global().ticks(),
        Clock::global().ticks_in(50_000_000),
    );
    // Without a handler, the signal of a timer that went on would be ignored; a sleep that it cut short would fail.
    panic!("{}", Command::new("sleep").arg("0.2").exec());
}

extern "C" fn not_ours(_: libc::c_int) {}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_program_that_takes_the_signal_has_probes_that_read_the_clock() {
    const NAME: &str = "a_program_that_takes_the_signal_has_probes_that_read_the_clock";
    if env::var_os(PART).is_none() {
        let done = anew(NAME).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        return;
    }
    let (clock, attached) = (Clock::global(), by_timer());
    attached.begin(1);
    attached.extend_slice(clock.ticks(), hour_ticks());
    assert_eq!(flag(), 0);
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGURG, not_ours as *const () as libc::sighandler_t) };
    attached.extend_slice(clock.ticks(), hour_ticks());
    assert_eq!(flag(), SELF_TIMED, "nobody would raise it");
}

#[test]
fn without_a_timer_probes_read_the_clock() {
    if env::var_os(PART).is_none() {
        let done = anew("without_a_timer_probes_read_the_clock")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        return;
    }
    // SAFETY: a handler that does nothing.
    unsafe { libc::signal(libc::SIGURG, not_ours as *const () as libc::sighandler_t) };
    let (clock, attached, mut fiber) = (Clock::global(), Attached::new(), probing());
    attached.self_timed(true);
    let refused = attached.raise_by_timer(clock).unwrap_err().to_string();
    assert!(refused.contains("another handler of SIGURG"), "{refused}");
    attached.begin(1);
    let (begin, slice_ticks) = (clock.ticks(), clock.ticks_in(20_000_000));
    attached.begin_slice(begin, slice_ticks);
    assert!(yielded(&fiber.run(Arc::default(), 0)));
    assert!(!attached.slice_goes_on(clock.ticks()));
    assert!(clock.ticks() - begin >= slice_ticks);
    attached.extend_slice(clock.ticks(), slice_ticks);
    assert_eq!(flag(), SELF_TIMED);
}
