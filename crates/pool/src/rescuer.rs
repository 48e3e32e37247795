//! The rescue of workers that wait for a suspended job.
//!
//! A job may be suspended while it holds a lock. A worker whose job wants the lock sleeps in the kernel; if all do, nobody is left to resume the holder. So a thread
//! of the pool looks whether a worker sleeps in the middle of a job while jobs are suspended. While one does, suspended jobs go on *at home*, in their own threads.
//! So they do while a worker finds nothing better to do than what is at home already, since that may wait for one of them.
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
            let beside_wanted = watch.most_home_beside_wanted(self.was_wanted_here());
            let most = match self.finds_asleep(&mut watch, shared) {
                true => watch.most_home(),
                false => beside_wanted,
            };
            if most > 0 {
                self.send_home(most);
            }
        }
    }

    /// Whether a worker sleeps in the middle of a turn, for something else than the pool's own lock.
    fn finds_asleep(&self, watch: &mut TurnWatch, shared: &SharedPool) -> bool {
        let workers = self.workers();
        if watch.look(&workers) != TurnsSeen::Asleep {
            return false;
        }
        // It may wait for the pool's own lock, whose holder the machine stopped. No job holds that one: who waits for it gets on by itself.
        drop(shared.core.lock());
        watch.sleeps_on(&workers)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use headway_machine::thread::ThreadActivity;

    use super::*;
    use crate::layout::PoolLayout;
    use crate::virtual_time::{core, shared_parts};

    fn until(what: &str, holds: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < limit, "{what}");
            thread::yield_now();
        }
    }

    /// A worker's turn takes a lock that is held. Releases the lock once `may_go` says so of the thread that looks after the worker. Returns whether that found the
    /// worker asleep.
    fn found_asleep<G>(
        shared: &Arc<SharedPool>,
        held: G,
        takes: impl FnOnce() + Send + 'static,
        may_go: impl Fn(&ThreadActivity, bool) -> bool,
    ) -> bool {
        let rescue = Arc::new(JobRescue::default());
        let (joined, joins) = mpsc::channel();
        let own = Arc::clone(&rescue);
        let worker = thread::spawn(move || {
            let turns = own.join();
            joined.send(()).unwrap();
            turns.step();
            takes();
            turns.rest();
        });
        joins.recv().unwrap();
        let (is_over, over) = (Arc::new(AtomicBool::new(false)), Ordering::Relaxed);
        let (tell, hear) = mpsc::channel();
        let (shared, ends) = (Arc::clone(shared), Arc::clone(&is_over));
        let rescuer = thread::spawn(move || {
            tell.send(ThreadActivity::of_current().unwrap()).unwrap();
            let mut watch = TurnWatch::for_workers(1);
            let mut found = false;
            while !found && !ends.load(over) {
                found = rescue.finds_asleep(&mut watch, &shared);
            }
            found
        });
        let looks = hear.recv().unwrap();
        until("it finds the worker asleep, or waits too", || {
            may_go(&looks, rescuer.is_finished())
        });
        drop(held);
        worker.join().unwrap();
        is_over.store(true, over);
        rescuer.join().unwrap()
    }

    #[test]
    fn a_worker_that_waits_for_the_pools_own_lock_is_not_taken_for_one_that_waits_for_a_job() {
        let shared = SharedPool::new(core("c-fcfs", PoolLayout::Inline, 1, 8), shared_parts());
        let own = Arc::clone(&shared);
        let found = found_asleep(
            &shared,
            shared.core.lock(),
            move || drop(own.core.lock()),
            |looks, is_over| is_over || looks.is_asleep() == Some(true),
        );
        assert!(!found);
    }

    #[test]
    fn a_worker_that_waits_for_a_jobs_lock_is_found_asleep() {
        let shared = SharedPool::new(core("c-fcfs", PoolLayout::Inline, 1, 8), shared_parts());
        let jobs = Arc::new(Mutex::new(()));
        let wanted = Arc::clone(&jobs);
        let found = found_asleep(
            &shared,
            jobs.lock().unwrap(),
            move || drop(wanted.lock().unwrap()),
            |_, is_over| is_over,
        );
        assert!(found);
    }
}
