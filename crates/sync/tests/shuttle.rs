//! Random interleavings of the parts that threads share, at sizes that loom cannot exhaust. A failure prints the schedule that repeats it.
//!
//! `RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p headway-sync --release --test shuttle`
#![cfg(shuttle)]

use headway_sync::park::{Parker, announce};
use headway_sync::run_queue::{RunQueue, Stolen, Thief, run_queue};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

/// Schedules tried of each model.
const SCHEDULES: usize = 5_000;

/// The state that workers share.
struct Shared {
    thieves: Vec<Thief>,
    /// Slices that each request still needs.
    left: Vec<AtomicUsize>,
    /// Whether some worker runs it now.
    runs: Vec<AtomicBool>,
    /// Requests that are not finished.
    unfinished: AtomicUsize,
}

impl Shared {
    /// Runs one slice of a request that nobody else runs. Whether it yields.
    fn run(&self, request: usize) -> bool {
        assert!(
            !self.runs[request].swap(true, Ordering::AcqRel),
            "one at a time"
        );
        thread::yield_now();
        let left = self.left[request].fetch_sub(1, Ordering::Relaxed) - 1;
        assert!(self.runs[request].swap(false, Ordering::AcqRel));
        if left == 0 {
            self.unfinished.fetch_sub(1, Ordering::AcqRel);
        }
        left > 0
    }
}

/// A worker: it runs what it has, steals what it has not, and what yields goes to its queue's tail, where others steal it.
fn work(me: usize, mut own: RunQueue, shared: &Shared) {
    let workers = shared.thieves.len();
    while shared.unfinished.load(Ordering::Acquire) > 0 {
        if let Some(request) = own.pop() {
            if shared.run(request as usize) {
                own.push(request).expect("each queue has room for all");
            }
            continue;
        }
        let stole = (1..workers).any(|offset| {
            let victim = &shared.thieves[(me + offset) % workers];
            matches!(
                victim.steal(victim.len().div_ceil(2), &mut own),
                Stolen::Batch(_)
            )
        });
        if !stole {
            thread::yield_now();
        }
    }
}

/// Workers that steal from each other give each request all its slices, one at a time, wherever it goes.
#[test]
fn stolen_requests_get_their_slices_once() {
    const WORKERS: usize = 4;
    const REQUESTS: usize = 12;
    const SLICES: usize = 3;
    let model = || {
        let (mut queues, thieves): (Vec<_>, Vec<_>) =
            (0..WORKERS).map(|_| run_queue(REQUESTS, true)).unzip();
        // All wait at one worker, and at another one: the others live on what they steal.
        for request in 0..REQUESTS {
            queues[request % 2]
                .push(request as u64)
                .expect("there is room");
        }
        let shared = Arc::new(Shared {
            thieves,
            left: (0..REQUESTS).map(|_| AtomicUsize::new(SLICES)).collect(),
            runs: (0..REQUESTS).map(|_| AtomicBool::new(false)).collect(),
            unfinished: AtomicUsize::new(REQUESTS),
        });
        let workers: Vec<_> = queues
            .into_iter()
            .enumerate()
            .map(|(me, own)| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || work(me, own, &shared))
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        let left = shared.left.iter().map(|left| left.load(Ordering::Relaxed));
        assert!(left.into_iter().all(|left| left == 0));
    };
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

/// A thread that parks whenever it finds nothing runs all that several others hand it. (shuttle reports the deadlock of a lost wake.)
#[test]
fn no_wake_of_several_is_lost() {
    const WAKERS: usize = 3;
    const WAKES: usize = 3;
    let model = || {
        let (parker, waiting) = (Arc::new(Parker::new()), Arc::new(AtomicUsize::new(0)));
        let wakers: Vec<_> = (0..WAKERS)
            .map(|_| {
                let (parker, waiting) = (Arc::clone(&parker), Arc::clone(&waiting));
                thread::spawn(move || {
                    for _ in 0..WAKES {
                        waiting.fetch_add(1, Ordering::Release);
                        announce();
                        parker.wake();
                    }
                })
            })
            .collect();
        let mut taken = 0;
        while taken < WAKERS * WAKES {
            match waiting.swap(0, Ordering::Acquire) {
                0 => parker.park_unless(|| waiting.load(Ordering::Relaxed) > 0),
                found => taken += found,
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    };
    shuttle::check_random(model, SCHEDULES);
}
