//! Suspended jobs that any thread may go on with, and the rescue of workers that wait for one of them.
//!
//! A job may be suspended while it holds a lock. A worker whose job wants the lock sleeps in the kernel; if all do, nobody is left to resume the holder. So a thread
//! of the pool looks whether a worker sleeps in the middle of a job while jobs are suspended. While one does, suspended jobs go on *at home*, in their own threads.
//! What ends there is counted and told at once: who sleeps may wait for the result.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headway_fiber::{Turn, TurnWatch, TurnsSeen, WorkerTurns};
use headway_machine::thread::CpuClock;
use headway_policy::{ClassId, JobId};
use headway_sync::Guarded;

use crate::core::JobEnd;
use crate::job::{RunEnd, Runnable, drop_quietly};
use crate::owning::OwningFiber;
use crate::shared::SharedPool;

/// Between two looks while jobs are suspended. A worker sleeps for one to two of them before it is noticed.
const LOOK: Duration = Duration::from_micros(400);

/// Looks in a row that found nothing suspended until the thread rests: whoever suspends the next job wakes it, which takes a system call.
const LOOKS_BEFORE_REST: u32 = 50;

/// A job that was interrupted, on its fiber.
pub(crate) struct InterruptedFiber {
    pub(crate) on: OwningFiber,
    pub(crate) job: Arc<dyn Runnable>,
    pub(crate) class: ClassId,
    /// Service before its last slice, ns.
    pub(crate) attained_ns: u64,
}

/// How a suspended job is that a worker takes up.
pub(crate) enum TakenUp {
    Ready(OwningFiber),
    /// Its own thread goes on with it still.
    AtHome,
    /// It ended at home.
    EndedAtHome(OwningFiber, RunEnd),
    /// It ended at home, and its end was counted already.
    Counted,
}

/// A job on its fiber, in nobody's hands or at home.
struct Place {
    is_at_home: bool,
    suspended: InterruptedFiber,
}

/// What the rescue's lock owns.
#[derive(Default)]
struct Places {
    suspended: HashMap<JobId, Place>,
    at_home: usize,
    /// Whether the thread that looks rests until a job is suspended.
    rests: bool,
    /// The pool's threads are gone.
    is_over: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Rescue {
    places: Guarded<Places>,
    workers: Guarded<Vec<Arc<WorkerTurns<CpuClock>>>>,
    sent_home: AtomicU64,
}

impl Rescue {
    /// The calling thread is a worker from now on.
    pub(crate) fn join(&self) -> Arc<WorkerTurns<CpuClock>> {
        let turns = Arc::new(WorkerTurns::of_current(CpuClock::of_current()));
        let mut workers = self.workers.lock();
        workers.retain(|worker| !worker.has_left());
        workers.push(Arc::clone(&turns));
        turns
    }

    /// Suspended jobs that went home so far.
    pub(crate) fn sent_home(&self) -> u64 {
        self.sent_home.load(Ordering::Relaxed)
    }

    /// Keeps a job that was interrupted. Called before its policy hears of it.
    pub(crate) fn suspend(&self, token: JobId, suspended: InterruptedFiber) {
        let mut places = self.places.lock();
        let wakes = std::mem::take(&mut places.rests);
        let place = Place {
            is_at_home: false,
            suspended,
        };
        places.suspended.insert(token, place);
        drop(places);
        if wakes {
            self.places.notify_all();
        }
    }

    /// Takes a job out that a worker was told to go on with.
    pub(crate) fn take_up(&self, token: JobId) -> TakenUp {
        let mut places = self.places.lock();
        let Some(mut place) = places.suspended.remove(&token) else {
            return TakenUp::Counted;
        };
        if !place.is_at_home {
            return TakenUp::Ready(place.suspended.on);
        }
        match place.suspended.on.fiber.turn_at_home() {
            None => {
                places.suspended.insert(token, place);
                TakenUp::AtHome
            }
            Some(turn) => {
                places.at_home -= 1;
                match turn {
                    Turn::Yielded => TakenUp::Ready(place.suspended.on),
                    Turn::Finished(job) => TakenUp::EndedAtHome(place.suspended.on, job.ran),
                }
            }
        }
    }

    /// The pool's last thread is gone.
    pub(crate) fn end(&self) {
        self.places.lock().is_over = true;
        self.places.notify_all();
    }

    /// Looks after the workers until they are gone. For a thread of its own.
    pub(crate) fn run(&self, shared: &Arc<SharedPool>) {
        let mut watch = TurnWatch::default();
        let mut quiet_looks = 0;
        while !self.places.lock().is_over {
            if quiet_looks > LOOKS_BEFORE_REST {
                self.rest();
                quiet_looks = 0;
            }
            std::thread::sleep(LOOK);
            self.collect(shared);
            if self.places.lock().suspended.is_empty() {
                quiet_looks += 1;
                continue;
            }
            quiet_looks = 0;
            let workers = self.workers.lock().clone();
            if watch.look(&workers) == TurnsSeen::Asleep {
                self.send_home(watch.most_home());
            }
        }
    }

    /// Waits until a job is suspended, or the workers are gone.
    fn rest(&self) {
        let mut places = self.places.lock();
        places.rests = places.suspended.is_empty();
        drop(
            self.places
                .wait_while(places, |places| places.rests && !places.is_over),
        );
    }

    /// Sends up to `most` suspended jobs home.
    fn send_home(&self, most: usize) {
        let mut places = self.places.lock();
        let away = places.suspended.values_mut();
        let mut sent = 0;
        for place in away.filter(|place| !place.is_at_home).take(most) {
            place.is_at_home = true;
            place.suspended.on.fiber.run_at_home();
            sent += 1;
        }
        places.at_home += sent;
        self.sent_home.fetch_add(sent as u64, Ordering::Relaxed);
    }

    /// Counts and tells what has ended at home.
    fn collect(&self, shared: &Arc<SharedPool>) {
        loop {
            let Some((ran, ended)) = self.ended_at_home() else {
                return;
            };
            let InterruptedFiber {
                job,
                class,
                attained_ns,
                ..
            } = ended;
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
    }

    fn ended_at_home(&self) -> Option<(RunEnd, InterruptedFiber)> {
        let mut places = self.places.lock();
        if places.at_home == 0 {
            return None;
        }
        let mut ended = None;
        for (&token, place) in &mut places.suspended {
            if !place.is_at_home {
                continue;
            }
            match place.suspended.on.fiber.turn_at_home() {
                None => {}
                Some(Turn::Yielded) => place.is_at_home = false,
                Some(Turn::Finished(job)) => {
                    ended = Some((token, job.ran));
                    break;
                }
            }
        }
        let left = ended.and_then(|(token, ran)| Some((ran, places.suspended.remove(&token)?)));
        let homes = places.suspended.values().filter(|place| place.is_at_home);
        places.at_home = homes.count();
        left.map(|(ran, place)| (ran, place.suspended))
    }
}
