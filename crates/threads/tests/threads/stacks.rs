//! Stacks that are too small, and too many or too large ones.

use std::hint::black_box;
use std::process::Command;

use headway_threads::{Runtime, park, spawn, try_spawn};

fn deeper(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    match room[0] {
        0 => 0,
        depth => deeper(depth + 1) + room[1],
    }
}

/// Ends its process, so another one has to watch it.
#[test]
#[ignore = "run by a_stack_overflow_is_reported_with_the_remedy"]
fn overflows() {
    let runtime = Runtime::builder().start().expect("kthreads");
    runtime.run(|| spawn(|| black_box(deeper(1))).join().is_ok());
}

/// Limits its process, which must not concern other tests.
#[test]
#[ignore = "run by a_stack_that_cannot_be_mapped_names_the_limit"]
fn finds_no_room() {
    let room = libc::rlimit {
        rlim_cur: 8 << 30,
        rlim_max: 8 << 30,
    };
    // SAFETY: the kernel reads the value.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const room) };
    assert_eq!(set, 0);
    let runtime = Runtime::builder().stack_bytes(1 << 30);
    let runtime = runtime.start().expect("kthreads");
    let error = runtime.run(|| std::iter::repeat_with(|| try_spawn(park)).find_map(Result::err));
    eprintln!("from inside: {}", error.expect("the iterator is endless"));
    // It panics, and says the same. One stack is free by now.
    for _ in 0..9 {
        runtime.spawn(park);
    }
}

/// What a process says that runs this test alone, and ends with an error.
fn said_at_the_end_of(test: &str) -> String {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(!child.status.success(), "{said}");
    said
}

#[test]
fn a_stack_overflow_is_reported_with_the_remedy() {
    let said = said_at_the_end_of("stacks::overflows");
    assert!(
        said.contains("headway: stack overflow in a user-level thread: it has "),
        "{said}"
    );
    let remedy = " KiB of stack; give threads larger ones (stack_bytes), or recurse less";
    assert!(said.contains(remedy), "{said}");
}

/// The system has the same error for a process without address space as for one at its limit of mappings.
#[test]
fn a_stack_that_cannot_be_mapped_names_the_limit() {
    let said = said_at_the_end_of("stacks::finds_no_room");
    let remedy = "cannot map a stack for a thread: Cannot allocate memory (os error 12); lower stack_bytes or raise vm.max_map_count";
    assert!(said.contains(&format!("from inside: {remedy}")), "{said}");
    assert_eq!(said.matches(remedy).count(), 2, "{said}");
}
