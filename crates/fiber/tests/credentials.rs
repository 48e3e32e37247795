//! Changes of credentials in a process whose threads run fibers with others' variables. A program of its own: it changes its group.
#![expect(unsafe_code, reason = "asks the C library")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, process};

use common::jobs::{Job, STACK_BYTES, fiber};
use headway_fiber::{SendFiber, Stacks, Turn};

/// No change takes longer. A caller that nobody answers sends signals for ever.
const LIMIT: Duration = Duration::from_secs(20);
/// A user and a group without rights.
const NOBODY: u32 = 65_534;

/// Runs the job on a fiber in a thread of its own, which tells when it is done.
fn in_worker(mut fiber: SendFiber<Option<Job>>, job: Job) -> Receiver<()> {
    let (tell, hear) = mpsc::channel();
    thread::spawn(move || {
        assert!(matches!(fiber.run(Some(job), 0), Turn::Finished(_)));
        tell.send(()).unwrap();
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

/// What the kernel says of each thread's users, groups and supplementary groups, by the thread's number.
fn credentials() -> BTreeMap<i32, [String; 3]> {
    let mut credentials = BTreeMap::new();
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap();
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else {
            continue; // It has ended.
        };
        let line = |name: &str| {
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let number = thread.file_name().into_string().unwrap();
        let lines = ["Uid:", "Gid:", "Groups:"].map(line);
        credentials.insert(number.parse().unwrap(), lines);
    }
    credentials
}

/// All threads have the same credentials, which are these.
#[track_caller]
fn all_have(
    seen: &BTreeMap<i32, [String; 3]>,
    effective_user: u32,
    effective_group: u32,
    groups: &str,
) {
    let effective = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    for [users, of_groups, supplementary] in seen.values() {
        let (user, group) = (effective(users), effective(of_groups));
        assert_eq!(
            (user, group, &**supplementary),
            (effective_user, effective_group, groups),
            "{seen:?}"
        );
    }
}

/// What a fiber of root's may do: it gives rights away, and takes them back. Between, what each thread has.
fn give_rights_away(nobody: u32, groups: &[u32]) -> (i32, BTreeMap<i32, [String; 3]>) {
    // SAFETY: arrays of so many, and numbers.
    unsafe {
        let mut before = vec![0; libc::getgroups(0, std::ptr::null_mut()) as usize];
        libc::getgroups(before.len() as i32, before.as_mut_ptr());
        let (own_user, own_group) = (libc::geteuid(), libc::getegid());
        let mut changed = libc::setgroups(groups.len(), groups.as_ptr());
        changed |= libc::setegid(nobody) | libc::seteuid(nobody);
        let given = credentials();
        changed |= libc::seteuid(own_user) | libc::setegid(own_group);
        changed |= libc::setgroups(before.len(), before.as_ptr());
        (changed, given)
    }
}

/// A change by a thread, then one by a fiber, while another worker runs a fiber. The second is by a fiber within a fiber as well.
#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "its own thread, which is signalled too, cannot run what it instruments"
)]
fn each_thread_changes_its_credentials_whichever_state_it_has() {
    // SAFETY: asks.
    let (own, user) = unsafe { (libc::getegid(), libc::geteuid()) };
    let is_root = user == 0;
    let [_, _, groups] = credentials().into_values().next().unwrap();
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

    let groups_before = groups.clone();
    let changes = thread::spawn(move || {
        assert_eq!(set_group(other), 0);
        all_have(&credentials(), user, other, &groups_before);
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
        let job: Job = Box::new(move || {
            let changed = set_group(own);
            tell.send((changed, credentials())).unwrap();
            if is_root {
                tell.send(give_rights_away(NOBODY, &[3, 5])).unwrap();
                tell.send((0, credentials())).unwrap();
            }
        });
        assert!(matches!(inner.run(Some(job), 0), Turn::Finished(_)));
    });
    let worker = in_worker(fiber(&stacks), outer);
    let changed = || {
        hear.recv_timeout(LIMIT)
            .unwrap_or_else(|_| give_up("a fiber's change"))
    };
    // The fiber's own thread follows, though the kernel had its worker make the call.
    let is_all = |groups: &str, user, group| {
        let (changed, seen) = changed();
        assert_eq!(changed, 0);
        all_have(&seen, user, group, groups);
    };
    is_all(&groups, user, own);
    if is_root {
        is_all("3 5", NOBODY, NOBODY);
        is_all(&groups, user, own);
    }
    over.store(true, Ordering::Release);
    for worker in [worker, busy_worker] {
        worker.recv_timeout(LIMIT).unwrap();
    }
    assert_eq!(set_group(own), 0);
}
