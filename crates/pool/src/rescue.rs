//! Suspended jobs that any thread may go on with, with its worker or at home.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_fiber::{Turn, WorkerTurns};
use headway_machine::thread::CpuClock;
use headway_policy::{ClassId, JobId};
use headway_sync::Guarded;

use crate::fiber_job::OwningFiber;
use crate::job::{RunEnd, Runnable};

/// A job that was interrupted, on its fiber.
pub(crate) struct InterruptedFiber {
    pub(crate) on: OwningFiber,
    pub(crate) job: Arc<dyn Runnable>,
    pub(crate) class: ClassId,
    /// Service before its last slice, ns.
    pub(crate) attained_ns: u64,
}

/// How a suspended job is that a worker takes up.
pub(crate) enum TakenFiber {
    Ready(OwningFiber),
    /// Its own thread goes on with it still.
    AtHome,
    /// It ended at home.
    EndedAtHome(OwningFiber, RunEnd),
    /// It ended at home, and its end was counted already.
    Counted,
}

/// A job on its fiber, in nobody's hands or at home.
struct SuspendedPlace {
    is_at_home: bool,
    suspended: InterruptedFiber,
}

/// What the rescue's lock owns.
#[derive(Default)]
struct SuspendedPlaces {
    suspended: HashMap<JobId, SuspendedPlace>,
    at_home: usize,
    /// Whether a worker was told to go on with one at home since the last look, and could not.
    is_wanted_here: bool,
    /// Whether the thread that looks rests until a job is suspended.
    rests: bool,
    /// The pool's threads are gone.
    is_over: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct JobRescue {
    places: Guarded<SuspendedPlaces>,
    workers: Guarded<Vec<Arc<WorkerTurns<CpuClock>>>>,
    sent_home: AtomicU64,
}

impl JobRescue {
    /// The calling thread is a worker from now on.
    pub(crate) fn join(&self) -> Arc<WorkerTurns<CpuClock>> {
        let turns = Arc::new(WorkerTurns::of_current(CpuClock::of_current()));
        let mut workers = self.workers.lock();
        workers.retain(|worker| !worker.has_left());
        workers.push(Arc::clone(&turns));
        turns
    }

    pub(crate) fn workers(&self) -> Vec<Arc<WorkerTurns<CpuClock>>> {
        self.workers.lock().clone()
    }

    /// Whether the pool's threads are gone.
    pub(crate) fn is_over(&self) -> bool {
        self.places.lock().is_over
    }

    /// Whether nothing is suspended.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.lock().suspended.is_empty()
    }

    /// Suspended jobs that went home so far.
    pub(crate) fn sent_home(&self) -> u64 {
        self.sent_home.load(Ordering::Relaxed)
    }

    /// Keeps a job that was interrupted. Called before its policy hears of it.
    pub(crate) fn suspend(&self, token: JobId, suspended: InterruptedFiber) {
        let mut places = self.places.lock();
        let wakes = std::mem::take(&mut places.rests);
        let place = SuspendedPlace {
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
    pub(crate) fn take_up(&self, token: JobId) -> TakenFiber {
        let mut places = self.places.lock();
        let Some(mut place) = places.suspended.remove(&token) else {
            return TakenFiber::Counted;
        };
        if !place.is_at_home {
            return TakenFiber::Ready(place.suspended.on);
        }
        match place.suspended.on.fiber.turn_at_home() {
            None => {
                places.suspended.insert(token, place);
                places.is_wanted_here = true;
                TakenFiber::AtHome
            }
            Some(turn) => {
                places.at_home -= 1;
                match turn {
                    Turn::Yielded => TakenFiber::Ready(place.suspended.on),
                    Turn::Finished(job) => TakenFiber::EndedAtHome(place.suspended.on, job.ran),
                }
            }
        }
    }

    /// The pool's last thread is gone.
    pub(crate) fn end(&self) {
        self.places.lock().is_over = true;
        self.places.notify_all();
    }

    /// Waits until a job is suspended, or the workers are gone.
    pub(crate) fn rest(&self) {
        let mut places = self.places.lock();
        places.rests = places.suspended.is_empty();
        drop(
            self.places
                .wait_while(places, |places| places.rests && !places.is_over),
        );
    }

    /// Whether a worker was told since the last look to go on with a job that is at home. Such a job may wait there for one that its policy has come later.
    pub(crate) fn was_wanted_here(&self) -> bool {
        std::mem::take(&mut self.places.lock().is_wanted_here)
    }

    /// Sends up to `most` suspended jobs home.
    pub(crate) fn send_home(&self, most: usize) {
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

    /// Takes a job out that ended at home.
    pub(crate) fn ended_at_home(&self) -> Option<(RunEnd, InterruptedFiber)> {
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
