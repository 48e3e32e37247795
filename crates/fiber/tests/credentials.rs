//! Changes of credentials in a process whose threads run fibers with others' variables. A program of its own: it changes its group.
#![expect(unsafe_code, reason = "asks the C library")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, process};

use common::jobs::{Job, STACK_BYTES, fiber, runs_over_home};
use common::run_alone;
use headway_fiber::{SendFiber, Stacks, Turn, on_own_thread};
use headway_machine::thread::CallFilter;

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

/// The supplementary groups, as the kernel says them.
fn groups_of_this_process() -> String {
    let [_, _, groups] = credentials().into_values().next().unwrap();
    groups
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
    let groups = groups_of_this_process();
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

/// What a program says that ends because of credentials.
const KEPT: &str = "headway: a thread kept its credentials where others changed theirs";

/// Runs a test, which changes credentials on a fiber, in a process of its own. The process must end as the change does not reach every thread.
#[track_caller]
fn assert_ends(test: &str) {
    let output = run_alone(test, "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains(KEPT), "{said}");
}

/// Whether the kernel can refuse a system call to one thread. Says what is skipped where it cannot.
fn has_filters() -> bool {
    let missing = CallFilter::missing();
    if let Some(why) = &missing {
        println!("SKIPPED changes that a fiber's own thread is refused: {why}");
    }
    missing.is_none()
}

/// Runs the call on a fiber whose own thread the kernel refuses these system calls. Returns what it returns.
fn where_home_is_refused<R: Send + 'static>(
    calls: &'static [libc::c_long],
    errno: i32,
    call: impl FnOnce() -> R + Send + 'static,
) -> R {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let (tell, hear) = mpsc::channel();
    let job: Job = Box::new(move || {
        on_own_thread(|| CallFilter::refusing(calls, errno).install().unwrap());
        tell.send(call()).unwrap();
    });
    runs_over_home(&mut fiber(&stacks), job);
    hear.recv().unwrap()
}

/// The calling thread's effective group.
fn group() -> libc::gid_t {
    // SAFETY: always valid to ask.
    unsafe { libc::getegid() }
}

#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "its own thread, which is signalled too, cannot run what it instruments"
)]
fn a_change_that_a_fibers_own_thread_is_refused_ends_the_program() {
    if !has_filters() {
        return;
    }
    assert_ends("own_thread_is_refused_a_group");
    assert_ends("own_thread_is_refused_a_user");
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn own_thread_is_refused_a_group() {
    where_home_is_refused(&[libc::SYS_setresgid], libc::EPERM, || set_group(group()));
}

/// As a user may be at its limit of processes.
#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn own_thread_is_refused_a_user() {
    where_home_is_refused(&[libc::SYS_setresuid], libc::EAGAIN, || set_group(group()));
}

#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "its own thread, which is signalled too, cannot run what it instruments"
)]
fn a_change_that_there_is_no_memory_for_ends_the_program() {
    assert_ends("no_memory_for_credentials");
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn no_memory_for_credentials() {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let job: Job = Box::new(|| {
        // SAFETY: a structure of two numbers, and its address during the calls.
        let changed = unsafe {
            let mut room = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::getrlimit(libc::RLIMIT_AS, &raw mut room);
            let none = libc::rlimit {
                rlim_cur: 1,
                ..room
            };
            libc::setrlimit(libc::RLIMIT_AS, &raw const none);
            let changed = set_group(libc::getegid());
            libc::setrlimit(libc::RLIMIT_AS, &raw const room);
            changed
        };
        println!("{changed}");
    });
    fiber(&stacks).run(Some(job), 0);
}

/// It sets what it cannot compare: its groups by the rights from before the change or from after it.
#[test]
#[cfg_attr(
    headway_tsan,
    ignore = "its own thread, which is signalled too, cannot run what it instruments"
)]
fn a_fibers_own_thread_that_has_no_memory_follows_where_it_has_the_right() {
    // SAFETY: asks.
    if unsafe { libc::geteuid() } != 0 {
        println!(
            "SKIPPED a_fibers_own_thread_that_has_no_memory_follows_where_it_has_the_right: it needs root"
        );
        return;
    }
    if !has_filters() {
        return;
    }
    let output = run_alone("own_thread_follows_without_memory", "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_ends("own_thread_has_neither_memory_nor_the_right");
}

#[test]
#[ignore = "it keeps a filter of system calls: another test runs it"]
fn own_thread_follows_without_memory() {
    let (own_group, groups) = (group(), groups_of_this_process());
    let (changed, given, back) = where_home_is_refused(&[libc::SYS_mmap], libc::ENOMEM, || {
        let (changed, given) = give_rights_away(NOBODY, &[3, 5]);
        (changed, given, credentials())
    });
    assert_eq!(changed, 0);
    all_have(&given, NOBODY, NOBODY, "3 5");
    all_have(&back, 0, own_group, &groups);
}

#[test]
#[ignore = "ends its process: another test runs it and watches"]
fn own_thread_has_neither_memory_nor_the_right() {
    where_home_is_refused(&[libc::SYS_mmap], libc::ENOMEM, || {
        // SAFETY: numbers.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        all_have(&credentials(), NOBODY, group(), &groups_of_this_process());
        set_group(group())
    });
}
