//! Threads that signals suspend after any instruction, also in the middle of this crate's functions. In a process of its own, for its allocator.
#![expect(
    unsafe_code,
    reason = "sends signals, and promises that threads tolerate them"
)]

use std::alloc::System;
use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headway_fiber::{NoPreempt, NoPreemptAlloc, checkpoint};
use headway_threads::{
    Condvar, JoinHandle, Migration, Mutex, ReadCell, Runtime, Semaphore, channel, current_kthread,
    sleep, spawn, suspend_at_signal, uthread_local, yield_now,
};

#[global_allocator]
static ALLOCATOR: NoPreemptAlloc<System> = NoPreemptAlloc(System);

const KTHREADS: usize = 3;

static SUSPENSIONS: AtomicU64 = AtomicU64::new(0);

extern "C" fn suspend(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: called in a handler, for threads that use nothing of their kernel thread outside of sections.
    unsafe {
        let at_signal = suspend_at_signal();
        if at_signal.may_stop() && at_signal.suspend(signal, context) {
            SUSPENSIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn install() {
    // SAFETY: the handler stores a word, and suspends threads that tolerate it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = suspend as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        let installed = libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut());
        assert_eq!(installed, 0);
    }
}

/// The kernel's numbers of the kthreads, found by threads that run until every kthread has run one.
fn tids(runtime: &Runtime) -> [i32; KTHREADS] {
    let tids: Arc<[AtomicI32; KTHREADS]> = Arc::default();
    let seekers: Vec<_> = (0..KTHREADS)
        .map(|_| {
            let tids = Arc::clone(&tids);
            runtime.spawn(move || {
                while tids.iter().any(|tid| tid.load(Ordering::Acquire) == 0) {
                    {
                        let _section = NoPreempt::enter();
                        let kthread = current_kthread().expect("a thread of the runtime");
                        // SAFETY: always valid to call.
                        tids[kthread].store(unsafe { libc::gettid() }, Ordering::Release);
                    }
                    yield_now();
                }
            })
        })
        .collect();
    seekers
        .into_iter()
        .for_each(|seeker| seeker.join().expect("no panic"));
    tids.each_ref().map(|tid| tid.load(Ordering::Acquire))
}

/// Sends signals to all kthreads until the flag is set.
fn bombard(tids: [i32; KTHREADS], done: &AtomicBool) {
    let mut pause_ns = 0;
    while !done.load(Ordering::Relaxed) {
        for tid in tids {
            // SAFETY: a thread of this process, or none.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
        }
        // Pauses of every length up to 30 µs, so that signals meet every instruction.
        pause_ns = (pause_ns + 1_009) % 30_000;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_nanos(pause_ns) {
            std::hint::spin_loop();
        }
    }
}

fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
}

fn counts_under_a_lock() {
    let count = Arc::new((Mutex::new(0), Condvar::new()));
    let threads = (0..4).map(|me| {
        let count = Arc::clone(&count);
        spawn(move || {
            for turn in 0..50 {
                let (count, changed) = &*count;
                let mut count = count.lock();
                while *count % 4 != me {
                    count = changed.wait(count);
                }
                assert_eq!(*count, turn * 4 + me);
                *count += 1;
                changed.notify_all();
            }
        })
    });
    join_all(threads.collect::<Vec<_>>());
    assert_eq!(*count.0.lock(), 200);
}

fn sends_in_order() {
    let (sender, receiver) = channel(3);
    let sends = spawn(move || (0..200_u64).for_each(|number| sender.send(number).expect("open")));
    for number in 0..200 {
        assert_eq!(receiver.recv().ok(), Some(number));
    }
    sends.join().expect("no panic");
    assert!(receiver.recv().is_err());
}

fn spawns_and_joins(depth: u32) -> u64 {
    if depth == 0 {
        return 1;
    }
    let other = spawn(move || spawns_and_joins(depth - 1));
    spawns_and_joins(depth - 1) + other.join().expect("no panic")
}

fn reads_what_was_written() {
    let cell = Arc::new(ReadCell::new((0_u64, 0_u64)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let cell = Arc::clone(&cell);
            spawn(move || {
                let mut last = 0;
                while last < 50 {
                    last = cell.read(|&(first, second)| {
                        assert!(first == second && first >= last);
                        first
                    });
                    yield_now();
                }
            })
        })
        .collect();
    for _ in 0..50 {
        cell.update(|&(first, second)| (first + 1, second + 1));
        yield_now();
    }
    join_all(readers);
}

/// Most signals of the tests above meet a system call. These are functions that make none.
fn locks_what_nobody_else_locks() {
    let count = Mutex::new(0);
    (0..20_000).for_each(|_| *count.lock() += 1);
    assert_eq!(*count.lock(), 20_000);
}

/// Probes suspend it too, at the end of its slices.
fn meets_checkpoints() {
    let mut word = 0_u64;
    for turn in 0..200_000_u64 {
        word = word
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(turn);
        checkpoint();
    }
    assert_eq!(word, 0xc6037e010979f160);
}

fn allocates(seed: u64) {
    let mut lists: Vec<Vec<u64>> = Vec::new();
    for turn in 0..2_000 {
        let key = seed + turn;
        let length = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        if length > 20 && !lists.is_empty() {
            let list = lists.swap_remove(length as usize % lists.len());
            assert!(list.iter().all(|&word| word == list[0]), "{list:?}");
        }
        lists.push(vec![key; 1 + length as usize]);
    }
}

uthread_local!(static OWN: Cell<u64> = Cell::new(0));

fn keeps_its_own_values() {
    let permits = Arc::new(Semaphore::new(2));
    let threads = (0..4).map(|me| {
        let permits = Arc::clone(&permits);
        spawn(move || {
            for turn in 0..50 {
                permits.acquire();
                OWN.with(|own| {
                    assert_eq!(own.get(), turn * me);
                    own.set(own.get() + me);
                });
                permits.release();
            }
            sleep(Duration::from_micros(me * 10));
        })
    });
    join_all(threads.collect::<Vec<_>>());
}

/// Sets the flag, also when the test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_function_may_be_suspended_anywhere() {
    install();
    // SAFETY: the threads use nothing of their kernel thread.
    let migration = unsafe { Migration::allow() };
    let runtime = Runtime::builder().kthreads(KTHREADS, migration);
    let runtime = runtime.start().expect("kthreads");
    let (tids, done) = (tids(&runtime), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = SetOnDrop(&done);
        let done = &done;
        scope.spawn(move || bombard(tids, done));
        let begun = Instant::now();
        while SUSPENSIONS.load(Ordering::Relaxed) < 3_000 {
            runtime.run(|| {
                join_all([
                    spawn(counts_under_a_lock),
                    spawn(sends_in_order),
                    spawn(|| assert_eq!(spawns_and_joins(12), 4_096)),
                    spawn(reads_what_was_written),
                    spawn(keeps_its_own_values),
                    spawn(locks_what_nobody_else_locks),
                    spawn(meets_checkpoints),
                    spawn(meets_checkpoints),
                    spawn(|| allocates(1)),
                    spawn(|| allocates(2)),
                ]);
            });
            assert!(
                begun.elapsed() < Duration::from_secs(300),
                "few suspensions"
            );
        }
    });
}
