//! Changes of credentials in a process whose threads run fibers with others' variables. A program of its own: it changes its group.
#![expect(unsafe_code, reason = "asks the C library")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, process};

use headway_fiber::{SendFiber, Stacks, Turn};

/// No change takes longer. A caller that nobody answers sends signals for ever.
const LIMIT: Duration = Duration::from_secs(20);
const STACK_BYTES: usize = 256 << 10;

type Job = Box<dyn FnOnce() + Send>;

fn fiber(stacks: &Stacks) -> SendFiber<Option<Job>> {
    let stack = stacks.take().expect("a thread can be made");
    let made = SendFiber::owning_thread_state(stack, |job: &mut Option<Job>| {
        job.take().expect("there is a job")();
    });
    made.unwrap_or_else(|_| unreachable!("the stack is a donor's"))
}

/// Runs the job on a fiber in a thread of its own, which tells its number first.
fn in_worker(mut fiber: SendFiber<Option<Job>>, job: Job) -> Receiver<i32> {
    let (tell, hear) = mpsc::channel();
    thread::spawn(move || {
        // SAFETY: always valid to ask.
        tell.send(unsafe { libc::gettid() }).unwrap();
        assert!(matches!(fiber.run(Some(job), 0), Turn::Finished(_)));
        tell.send(0).unwrap();
    });
    hear
}

/// Ends the program: who sends signals for ever goes on beside a test that fails, whose fibers wait for their threads.
fn give_up(what: impl fmt::Display) -> ! {
    eprintln!("{what} does not end");
    process::abort()
}

/// Sets the effective group, to what it is or to another one, and tells the result.
fn set_group(group: libc::gid_t) -> i32 {
    // SAFETY: always valid to ask for.
    unsafe { libc::setegid(group) }
}

/// The effective group of each thread, by its number.
fn groups() -> BTreeMap<i32, u32> {
    let mut groups = BTreeMap::new();
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap();
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else {
            continue; // It has ended.
        };
        let line = status.lines().find(|line| line.starts_with("Gid:"));
        let group = line.and_then(|line| line.split_whitespace().nth(2));
        let number = thread.file_name().into_string().unwrap();
        groups.insert(number.parse().unwrap(), group.unwrap().parse().unwrap());
    }
    groups
}

/// A change by a thread, then one by a fiber, while another worker runs a fiber. The second is by a fiber within a fiber as well.
#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "its own thread, which is signalled too, cannot run what it instruments"
)]
fn each_thread_changes_its_credentials_whichever_state_it_has() {
    // SAFETY: asks.
    let (own, is_root) = unsafe { (libc::getegid(), libc::geteuid() == 0) };
    // Without the right to take another group, the calls that change nothing must end at least.
    let other = if is_root { own + 1 } else { own };
    let stacks = Stacks::of_donors(STACK_BYTES, 4).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (begun, begins) = mpsc::channel();
    let until = Arc::clone(&over);
    let busy: Job = Box::new(move || {
        begun.send(()).unwrap();
        while !until.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    });
    let busy_worker = in_worker(fiber(&stacks), busy);
    begins.recv_timeout(LIMIT).unwrap();

    let changes = thread::spawn(move || {
        assert_eq!(set_group(other), 0);
        let seen = groups();
        assert!(seen.values().all(|group| *group == other), "{seen:?}");
    });
    let begun = Instant::now();
    while !changes.is_finished() {
        if begun.elapsed() > LIMIT {
            give_up("a thread's change");
        }
        thread::sleep(Duration::from_millis(1));
    }
    changes.join().unwrap();

    let (tell, hear) = mpsc::channel();
    let mut inner = fiber(&stacks);
    let outer: Job = Box::new(move || {
        let job: Job = Box::new(move || tell.send((set_group(own), groups())).unwrap());
        assert!(matches!(inner.run(Some(job), 0), Turn::Finished(_)));
    });
    let worker = in_worker(fiber(&stacks), outer);
    let number = worker.recv_timeout(LIMIT).unwrap();
    let Ok((changed, seen)) = hear.recv_timeout(LIMIT) else {
        give_up("a fiber's change");
    };
    assert_eq!(changed, 0);
    assert_eq!(seen[&number], own, "{seen:?}");
    // The fiber's own thread alone has the credentials from before: the kernel had its worker make the call.
    let others = seen.values().filter(|group| **group != own).count();
    assert_eq!(others, usize::from(is_root), "{seen:?}");
    over.store(true, Ordering::Release);
    for worker in [worker, busy_worker] {
        while worker.recv_timeout(LIMIT).unwrap() != 0 {}
    }
    assert_eq!(set_group(own), 0);
}
