//! `perf record -g` beside fibers that switch all the time: each sample shows who called what runs in the fiber.
//!
//! It samples code that runs. Where suspended fibers stand, a debugger shows (`donors.rs`), and `headway ctl stacks`.
#![expect(unsafe_code, reason = "asks for a thread's processor time")]

use std::hint::black_box;
use std::process::{Command, Output, Stdio};
use std::{mem, path::Path};

use headway_fiber::{SendFiber, Stacks, Turn, yield_now};

/// For so long the job runs and switches, of its processor's time.
const RUN_NS: u128 = 400_000_000;
/// Its functions, the innermost first, and the first frame of its stack.
const CALLERS: [&str; 4] = [
    "innermost_of_a_sampled_job",
    "middle_of_a_sampled_job",
    "outermost_of_a_sampled_job",
    "__headway_lent_fiber_begin",
];

#[inline(never)]
fn innermost_of_a_sampled_job(rounds: u32) {
    for round in 0..rounds {
        yield_now();
        black_box(round);
    }
}

#[inline(never)]
fn middle_of_a_sampled_job() {
    innermost_of_a_sampled_job(1000);
    black_box(2);
}

#[inline(never)]
fn outermost_of_a_sampled_job() {
    while used_ns() < RUN_NS {
        middle_of_a_sampled_job();
    }
    black_box(3);
}

/// The processor time of this process.
fn used_ns() -> u128 {
    // SAFETY: a place for the answer.
    unsafe {
        let mut now: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now);
        now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
    }
}

#[test]
#[ignore = "run by perf_shows_the_callers_of_what_runs_in_a_fiber"]
fn sampled() {
    let stacks = Stacks::of_donors(256 << 10, 1).unwrap();
    let job = |(): &mut ()| outermost_of_a_sampled_job();
    let Ok(mut fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), job) else {
        unreachable!("the stack is a donor's")
    };
    let mut turn = fiber.run((), 0);
    while let Turn::Yielded = turn {
        turn = fiber.resume();
    }
}

/// Runs `perf` with its data in this folder.
fn perf(dir: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    let mut perf = Command::new("perf");
    perf.args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
}

#[test]
#[cfg_attr(
    any(headway_asan, headway_tsan),
    ignore = "a sanitizer's switch has frames of its runtime"
)]
fn perf_shows_the_callers_of_what_runs_in_a_fiber() {
    let dir = tempfile::tempdir().unwrap();
    let subject = std::env::current_exe().unwrap();
    let subject = subject.to_str().unwrap();
    // The processor's own counters may be missing, as in a virtual machine.
    let record = "record -q -o perf.data -e cpu-clock:u -F 500 --call-graph dwarf,16384 --";
    let job = "--exact sampled --ignored --nocapture";
    let arguments: Vec<&str> = record
        .split(' ')
        .chain([subject])
        .chain(job.split(' '))
        .collect();
    let recorded = match perf(dir.path(), &arguments) {
        Ok(recorded) => recorded,
        Err(error) => {
            eprintln!("SKIPPED: perf does not start: {error} (apt-get install linux-perf)");
            return;
        }
    };
    if !recorded.status.success() {
        let why = String::from_utf8_lossy(&recorded.stderr);
        eprintln!("SKIPPED: perf may not record here: {why}");
        return;
    }
    let script = perf(
        dir.path(),
        &["script", "-i", "perf.data", "-F", "ip,sym", "--no-inline"],
    )
    .unwrap();
    let script = String::from_utf8_lossy(&script.stdout);
    // The caller of a test's thread, which has a plain stack.
    if !script.contains("__rust_begin_short_backtrace") {
        eprintln!("SKIPPED: this perf unwinds no stacks: it was built without libdw and libunwind");
        return;
    }
    let samples = script.split("\n\n");
    let (mut seen, mut lost) = (0, Vec::new());
    for sample in samples.filter(|sample| sample.contains(CALLERS[0])) {
        seen += 1;
        let at = CALLERS.map(|caller| sample.find(caller));
        if at.contains(&None) || !at.is_sorted() {
            lost.push(sample);
        }
    }
    assert!(seen > 0, "samples of the job are among: {script}");
    assert_eq!(lost, [""; 0], "of {seen} samples");
}
