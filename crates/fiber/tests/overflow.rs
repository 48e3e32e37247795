//! A fiber that overflows its stack is reported with its class; other faults are left to whom they concern.
//!
//! The process dies, so each case runs in one of its own: this test binary again, with a test that is ignored otherwise.
#![expect(unsafe_code, reason = "faults")]

mod common;

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use common::{run_alone, stacks};
use headway_fiber::{
    Attached, Fiber, SendFiber, Stacks, Turn, report_overflows, report_thread_overflows, yield_now,
};

fn assert_died(test: &str, signal: i32, says: &str) {
    let output = run_alone(test, "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(signal), "{stderr}");
    assert!(stderr.contains(says), "{stderr}");
}

#[test]
fn an_overflow_names_the_class() {
    let says = "stack overflow in a request of class SCAN: its fiber has 6";
    assert_died("overflows", libc::SIGABRT, says);
}

#[test]
fn an_overflow_in_a_thread_of_c_names_the_class() {
    assert_died("overflows_in_a_thread_of_c", libc::SIGABRT, "of class 77:");
}

#[test]
fn an_overflow_at_home_names_the_class() {
    let says = "stack overflow in a request of class SCAN: its fiber has ";
    assert_died("overflows_at_home", libc::SIGABRT, says);
}

#[test]
fn an_overflow_of_a_threads_own_stack_is_the_standard_librarys() {
    assert_died(
        "overflows_outside",
        libc::SIGABRT,
        "has overflowed its stack",
    );
}

#[test]
fn a_wild_pointer_in_a_fiber_is_no_overflow() {
    assert_died("follows_a_wild_pointer", libc::SIGSEGV, "");
    let stderr = run_alone("follows_a_wild_pointer", "").stderr;
    assert!(!String::from_utf8_lossy(&stderr).contains("overflow"));
}

fn name(label: u64) -> Option<&'static str> {
    (label == 3).then_some("SCAN")
}

#[expect(unconditional_recursion, reason = "that is the point")]
#[inline(never)]
fn recurse(depth: &mut u64) -> u64 {
    let mut frame = black_box([*depth; 64]);
    *depth += 1;
    frame[0] += recurse(depth);
    black_box(frame)[0]
}

fn overflow_in_a_fiber(label: u64) {
    let _attached = Attached::new();
    // A scheduler of strands that was first leaves the names to others.
    report_thread_overflows().expect("handlers can be installed");
    report_overflows(name).expect("handlers can be installed");
    let mut fiber = Fiber::new(stacks().take().unwrap(), |depth: &mut u64| {
        recurse(depth);
    });
    fiber.run(0, label);
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn overflows() {
    overflow_in_a_fiber(3);
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn overflows_in_a_thread_of_c() {
    extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
        overflow_in_a_fiber(77);
        std::ptr::null_mut()
    }
    // SAFETY: starts a thread and waits for it.
    unsafe {
        let mut thread = 0;
        libc::pthread_create(&mut thread, std::ptr::null(), run, std::ptr::null_mut());
        libc::pthread_join(thread, std::ptr::null_mut());
    }
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn overflows_at_home() {
    report_overflows(name).expect("handlers can be installed");
    let stacks = Stacks::of_donors(64 << 10, 1).expect("a thread can be made");
    let body = |depth: &mut u64| {
        yield_now();
        recurse(depth);
    };
    let Ok(mut fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), body) else {
        unreachable!("the stack is a donor's")
    };
    assert_eq!(fiber.run(0, 3), Turn::Yielded);
    fiber.run_at_home();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn overflows_outside() {
    report_overflows(name).expect("handlers can be installed");
    std::thread::spawn(|| recurse(&mut 0)).join().unwrap();
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn follows_a_wild_pointer() {
    report_overflows(name).expect("handlers can be installed");
    let _attached = Attached::new();
    let mut fiber = Fiber::new(stacks().take().unwrap(), |address: &mut usize| {
        // SAFETY: none: this faults.
        unsafe { (black_box(*address) as *mut u8).write_volatile(1) };
    });
    fiber.run(64, 3);
}
