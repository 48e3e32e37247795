//! The rescue of workers that wait for a suspended job.
//!
//! A job may be suspended while it holds a lock. A worker whose job wants the lock sleeps in the kernel; if all do, nobody is left to resume the holder. So a thread
//! of the pool looks whether a worker sleeps in the middle of a job while jobs are suspended. While one does, suspended jobs go on *at home*, in their own threads.
//! What ends there is counted and told at once: who sleeps may wait for the result.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use headway_fiber::{TurnWatch, TurnsSeen};
use headway_policy::MAX_WORKERS;
use headway_sync::thread;

use crate::core::JobEnd;
use crate::current;
use crate::job::{RunEnd, drop_quietly};
use crate::rescue::{InterruptedFiber, JobRescue};
use crate::shared::SharedPool;

/// Between two looks while jobs are suspended. A worker sleeps for one to two of them before it is noticed.
const LOOK: Duration = Duration::from_micros(400);

/// Looks in a row that found nothing suspended until the thread rests: whoever suspends the next job wakes it, which takes a system call.
const LOOKS_BEFORE_REST: u32 = 50;

impl JobRescue {
    /// Looks after the workers until they are gone. For a thread of its own.
    pub(crate) fn run(&self, shared: &Arc<SharedPool>) {
        let mut watch = TurnWatch::for_workers(MAX_WORKERS);
        let mut quiet_looks = 0;
        while !self.is_over() {
            if quiet_looks > LOOKS_BEFORE_REST {
                self.rest();
                quiet_looks = 0;
            }
            thread::sleep(LOOK);
            collect(self, shared);
            if self.is_empty() {
                quiet_looks += 1;
                continue;
            }
            quiet_looks = 0;
            let workers = self.workers();
            if watch.look(&workers) != TurnsSeen::Asleep {
                continue;
            }
            // It may wait for the pool's own lock, whose holder the machine stopped. No job holds that one: who waits for it gets on by itself.
            drop(shared.core.lock());
            if watch.sleeps_on(&workers) {
                self.send_home(watch.most_home());
            }
        }
    }
}

/// Has what ended at home counted and told, each job in a thread of its own: destructors and wakers of the program may wait for what only another rescue frees.
fn collect(rescue: &JobRescue, shared: &Arc<SharedPool>) {
    while let Some((ran, ended)) = rescue.ended_at_home() {
        let slot = Arc::new(Mutex::new(Some((ran, ended))));
        let (name, pool, its) = (
            format!("{}-told", shared.name),
            Arc::clone(shared),
            Arc::clone(&slot),
        );
        let told = thread::Builder::new().name(name).spawn(move || {
            current::join(pool.number(), Arc::clone(&pool.over));
            tell_in(&its, &pool);
        });
        match told {
            Ok(thread) => shared.keep(thread),
            // There is no thread for it.
            Err(_) => tell_in(&slot, shared),
        }
    }
}

/// Tells what is in the slot.
fn tell_in(slot: &Mutex<Option<(RunEnd, InterruptedFiber)>>, shared: &Arc<SharedPool>) {
    let ended = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((ran, ended)) = ended {
        tell(ran, ended, shared);
    }
}

/// Counts and tells a job that ended at home.
fn tell(ran: RunEnd, ended: InterruptedFiber, shared: &Arc<SharedPool>) {
    let InterruptedFiber {
        on,
        job,
        class,
        attained_ns,
    } = ended;
    shared.slices.give_back(on);
    let end = JobEnd {
        class,
        ran,
        cpu_ns: attained_ns,
        chosen: None,
    };
    let now_ns = shared.clock.now_ns();
    let mut core = shared.core.lock();
    core.ended(now_ns, end, &job);
    shared.settle(core);
    job.publish();
    drop_quietly(job);
}
