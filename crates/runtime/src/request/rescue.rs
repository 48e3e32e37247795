//! The rescue of workers that wait for what is suspended: what the workers have to do with it.
//!
//! A request that owns a thread's state may be suspended while it holds a lock. Another request that wants the lock then sleeps in the kernel, and its worker with
//! it: if all workers do, nobody is left to resume the holder. So a [thread of the server](crate::threads::rescuer) looks whether a worker sleeps in the middle of a request. While one
//! does, suspended requests go on at home, in their own threads, until the worker gets on. So they do, one by one, while a worker finds nothing better to do than one that is at home
//! already, since that may wait for another. Deadlock by suspension is impossible; what it cost is counted.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use headway_fiber::{TurnWatch, TurnsSeen, WorkerTurns};
use headway_sync::Guarded;
use headway_sync::look_alert::LookAlert;

use crate::stats::own_time::OwnTime;

/// What the workers of a server share with the thread that rescues them.
pub(crate) struct Rescue {
    workers: Guarded<Vec<Arc<WorkerTurns<OwnTime>>>>,
    /// Requests that are suspended, and whether the thread looks often.
    alert: LookAlert,
    /// Whether a worker was told to go on with one at home since the last look, and could not.
    is_wanted_here: AtomicBool,
    /// Has the thread look again at once.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// By class: suspended requests that went home.
    sent_home: Box<[AtomicU64]>,
    /// By class: requests that could have been interrupted, and were not, since no thread was there to lend them its state.
    without_thread: Box<[AtomicU64]>,
}

impl Rescue {
    /// Of a server with so many classes, UNKNOWN included.
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            workers: Guarded::new(Vec::new()),
            alert: LookAlert::default(),
            is_wanted_here: AtomicBool::new(false),
            wake: OnceLock::new(),
            sent_home: (0..classes).map(|_| AtomicU64::new(0)).collect(),
            without_thread: (0..classes).map(|_| AtomicU64::new(0)).collect(),
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
        if self.alert.note() {
            self.awake();
        }
    }

    /// A worker was told to go on with a request that is at home. That one may wait for a suspended one that its policy has come later.
    pub(super) fn wanted_here(&self) {
        self.is_wanted_here.store(true, Ordering::Relaxed);
        self.watch();
    }

    /// Whether that happened since the last look.
    pub(crate) fn was_wanted_here(&self) -> bool {
        self.is_wanted_here.swap(false, Ordering::Relaxed)
    }

    #[cold]
    fn awake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Says how the thread that rescues is woken. Later calls have no effect.
    pub(crate) fn set_wake(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.wake.set(wake);
    }

    /// How the thread that rescues learns that requests are suspended.
    pub(crate) fn alert(&self) -> &LookAlert {
        &self.alert
    }

    /// Looks at the workers.
    pub(crate) fn look(&self, watch: &mut TurnWatch) -> TurnsSeen {
        watch.look(&self.workers.lock())
    }

    /// Whether no worker runs this fiber, which has no thread's state of its own.
    pub(super) fn no_worker_runs(&self, fiber: NonNull<()>) -> bool {
        let workers = self.workers.lock();
        // A worker that ended left what it ran.
        let mut others = workers.iter().filter(|worker| !worker.has_left());
        others.all(|worker| matches!(worker.runs(fiber), Ok(false)))
    }

    /// Whether all workers have ended.
    pub(crate) fn all_have_left(&self) -> bool {
        self.workers.lock().iter().all(|worker| worker.has_left())
    }

    /// A suspended request of this class went home.
    pub(crate) fn count(&self, class: usize) {
        self.sent_home[class.min(self.sent_home.len() - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// A request of this class found no thread to lend it its state.
    #[cold]
    pub(super) fn count_without_thread(&self, class: usize) {
        self.without_thread[class.min(self.without_thread.len() - 1)]
            .fetch_add(1, Ordering::Relaxed);
    }

    /// By class, the requests that found no thread.
    pub(crate) fn without_thread(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.without_thread.iter();
        counts.map(|count| count.load(Ordering::Relaxed))
    }

    /// By class, the suspended requests that went home, since a worker waited.
    pub(crate) fn sent_home(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.sent_home.iter();
        counts.map(|count| count.load(Ordering::Relaxed))
    }
}
