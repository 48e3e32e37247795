//! The rescue of workers that wait for what is suspended.
//!
//! A request that owns a thread's state may be suspended while it holds a lock. Another request that wants the lock then sleeps in the kernel, and its worker with
//! it: if all workers do, nobody is left to resume the holder. So a thread of the server looks whether a worker sleeps in the middle of a request. While one
//! does, suspended requests go on at home, in their own threads, until the worker gets on. Deadlock by suspension is impossible; what it cost is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use headway_fiber::{TurnWatch, TurnsSeen, WorkerTurns};
use headway_sync::Guarded;

use super::suspended::SuspendedRequests;
use crate::stats::own_time::OwnTime;
use crate::threads::control::{ServerControl, ServerPhase};

/// Between two looks while requests are being suspended. A worker sleeps for one to two of them before it is noticed.
const LOOK: Duration = Duration::from_micros(400);

/// Looks without a suspension and without a worker that sleeps until they become rarer.
const LOOKS_BEFORE_RARE: u32 = 50;

/// Between two rare looks, while workers run requests.
const RARE_LOOK: Duration = Duration::from_millis(20);

/// Between two rare looks while no worker does: the next suspension wakes the thread.
const REST: Duration = Duration::from_secs(1);

/// What the workers of a server share with the thread that rescues them.
pub(crate) struct Rescue {
    control: Arc<ServerControl>,
    workers: Guarded<Vec<Arc<WorkerTurns<OwnTime>>>>,
    /// Whether a request was suspended since the last look.
    suspended: AtomicBool,
    /// Whether the thread looks often.
    is_awake: AtomicBool,
    /// By class: suspended requests that went home.
    sent_home: Box<[AtomicU64]>,
}

impl Rescue {
    /// Of a server with so many classes, UNKNOWN included.
    pub(crate) fn new(control: Arc<ServerControl>, classes: usize) -> Self {
        Self {
            control,
            workers: Guarded::new(Vec::new()),
            suspended: AtomicBool::new(false),
            is_awake: AtomicBool::new(true),
            sent_home: (0..classes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The calling thread is a worker from now on.
    pub(super) fn join(&self) -> Arc<WorkerTurns<OwnTime>> {
        let turns = Arc::new(WorkerTurns::of_current(OwnTime::of_current()));
        self.workers.lock().push(Arc::clone(&turns));
        turns
    }

    /// A request was suspended that could go home.
    #[inline]
    pub(super) fn watch(&self) {
        if !self.suspended.load(Ordering::Relaxed) {
            self.suspended.store(true, Ordering::Relaxed);
            if !self.is_awake.load(Ordering::Relaxed) {
                self.awake();
            }
        }
    }

    #[cold]
    fn awake(&self) {
        self.is_awake.store(true, Ordering::Relaxed);
        self.control.notify_waiting();
    }

    /// Whether no worker is left to look after: after an abandoned drain they end one by one.
    fn is_over(&self) -> bool {
        match self.control.phase() {
            ServerPhase::Stopped => true,
            ServerPhase::Abandoning => self.workers.lock().iter().all(|worker| worker.has_left()),
            ServerPhase::Running | ServerPhase::Draining => false,
        }
    }

    /// By class, the suspended requests that went home, since a worker waited.
    pub(crate) fn sent_home(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.sent_home.iter();
        counts.map(|count| count.load(Ordering::Relaxed))
    }

    /// Looks after the workers until the server has stopped. For a thread of its own.
    pub(crate) fn run(&self, suspended: &SuspendedRequests) {
        let mut watch = TurnWatch::default();
        let mut quiet_looks = 0;
        while !self.is_over() {
            let was_suspended = self.suspended.swap(false, Ordering::Relaxed);
            let seen = watch.look(&self.workers.lock());
            if seen == TurnsSeen::Asleep {
                let tell = |class: usize| {
                    self.sent_home[class.min(self.sent_home.len() - 1)]
                        .fetch_add(1, Ordering::Relaxed);
                };
                suspended.send_home(watch.most_home(), tell);
            }
            let is_quiet = !was_suspended && seen != TurnsSeen::Asleep;
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            let is_rare = quiet_looks > LOOKS_BEFORE_RARE;
            let is_ending = self.control.phase() >= ServerPhase::Abandoning;
            let pause = match seen {
                _ if !is_rare || is_ending => LOOK,
                TurnsSeen::Idle => REST,
                _ => RARE_LOOK,
            };
            self.is_awake.store(!is_rare, Ordering::Relaxed);
            self.control
                .wait_past_for(ServerPhase::Abandoning, pause, || {
                    is_rare && self.is_awake.load(Ordering::Relaxed)
                });
        }
    }
}
