//! C++ exceptions across a suspension, seen from their runtime; and backtraces.
//!
//! A program with a C++ runtime has `__cxa_get_globals`, which says where a thread keeps its exceptions. Here it is a function of this
//! test, which sees exactly what is done to that state, and is called in the middle of a suspension.
#![expect(unsafe_code, reason = "the C++ runtime's side")]

mod common;

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};

use common::{resume, stacks};
use headway_fiber::abi::__headway_preempted;
use headway_fiber::{Attached, Fiber, Turn, checkpoint, yield_now};

type Globals = (usize, u32);

thread_local! {
    static GLOBALS: Cell<Globals> = const { Cell::new((0, 0)) };
    /// The first backtrace from inside a suspension, if it is wanted.
    static TRACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

#[unsafe(no_mangle)]
extern "C" fn __cxa_get_globals() -> *const Cell<Globals> {
    TRACE.with_borrow_mut(|trace| {
        if trace.as_ref().is_some_and(String::is_empty) {
            *trace = Some(Backtrace::force_capture().to_string());
        }
    });
    GLOBALS.with(std::ptr::from_ref)
}

#[test]
fn exceptions_in_flight_are_the_fibers_own() {
    let attached = Attached::new();
    let flag = attached.flag();
    let catches = |exception: usize| {
        Fiber::new(stacks().take().unwrap(), move |by_probe: &mut bool| {
            assert_eq!(GLOBALS.get(), (0, 0));
            GLOBALS.set((exception, 1)); // It enters a catch block,
            if *by_probe {
                checkpoint();
            } else {
                yield_now();
            }
            assert_eq!(GLOBALS.replace((0, 0)), (exception, 1)); // and leaves it.
        })
    };
    let (mut first, mut second) = (catches(1), catches(2));
    for by_probe in [false, true] {
        attached.begin(1);
        flag.raise(1);
        assert_eq!(first.run(by_probe, 0), Turn::Yielded);
        attached.begin(2);
        flag.raise(2);
        assert_eq!(second.run(by_probe, 0), Turn::Yielded);
        attached.begin(3);
        // In the order in which C++'s own stack of exceptions would be torn.
        assert_eq!(resume(&mut first), Turn::Finished(by_probe));
        assert_eq!(resume(&mut second), Turn::Finished(by_probe));
        assert_eq!(GLOBALS.get(), (0, 0));
    }
}

#[inline(never)]
fn deep_inside(trace: &mut String) {
    *trace = Backtrace::force_capture().to_string();
}

#[inline(never)]
fn runs_a_fiber() -> String {
    let mut fiber = Fiber::new(stacks().take().unwrap(), deep_inside);
    match fiber.run(String::new(), 0) {
        Turn::Finished(trace) => trace,
        Turn::Yielded => panic!("nobody asked"),
    }
}

#[test]
fn a_backtrace_in_a_fiber_reaches_whoever_runs_it() {
    let trace = runs_a_fiber();
    for frame in ["deep_inside", "runs_a_fiber", "a_backtrace_in_a_fiber"] {
        assert!(trace.contains(frame), "no {frame} in\n{trace}");
    }
}

#[inline(never)]
fn stands_at_a_probe(job: &mut ()) {
    // SAFETY: what a probe of the compiler pass calls, and the stack has the page that it wants.
    unsafe { __headway_preempted() };
    std::hint::black_box(job); // Or the probe's call would be its last, a jump.
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "sanitizers make LLVM leave out what unwinds assembly"
)]
fn a_backtrace_in_a_probes_slow_path_reaches_whoever_runs_the_fiber() {
    let attached = Attached::new();
    let mut fiber = Fiber::new(stacks().take().unwrap(), stands_at_a_probe);
    attached.begin(1);
    attached.flag().raise(1);
    TRACE.set(Some(String::new()));
    assert_eq!(fiber.run((), 0), Turn::Yielded);
    let trace = TRACE.take().expect("there is one");
    for frame in [
        "call_preserving",
        "stands_at_a_probe",
        "a_backtrace_in_a_probes",
    ] {
        assert!(trace.contains(frame), "no {frame} in\n{trace}");
    }
    assert_eq!(resume(&mut fiber), Turn::Finished(()));
}
