//! What a pool's handles, futures and threads share: the lock, and what follows its release.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headway_machine::Clock;
use headway_machine::thread::fork;
use headway_policy::ClassId;
use headway_sync::thread::JoinHandle;
use headway_sync::{Guarded, MutexGuard};

use crate::class::ClassNames;
use crate::core::{JobEnd, PoolCore, PoolPhase};
use crate::current;
use crate::error::{ShutdownTimeout, SubmitError};
use crate::idle_wait::IdleHandle;
use crate::job::{EarlyEnd, RunEnd, Runnable};
use crate::learning::KeyLearner;
use crate::poller::Poller;
use crate::slice_settings::SliceSettings;
use crate::thread_table::Rouse;

/// See the [module](self).
pub(crate) struct SharedPool {
    pub(crate) core: Guarded<PoolCore>,
    /// Whether the pool has ended.
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) clock: Clock,
    /// See [`Decide::events`](crate::decisions::Decide::events).
    pub(crate) events: Arc<AtomicU64>,
    /// The process's forks when the pool was built.
    forks: u64,
    /// Of the threads.
    pub(crate) name: String,
    /// The cores to which workers are pinned; empty for none.
    pub(crate) pins: Vec<usize>,
    /// Of the threads; 0 as they are born.
    pub(crate) nice: u8,
    pub(crate) slices: SliceSettings,
    /// What workers call between slices, until the pool has ended.
    poller: Guarded<Option<Poller>>,
    /// Past its slice's end, a job that goes on for longer without a probe stalls, ns.
    pub(crate) stall_ns: u64,
    pub(crate) classes: ClassNames,
    pub(crate) learner: Option<Mutex<KeyLearner>>,
    start: StartThread,
    handles: Guarded<Vec<JoinHandle<()>>>,
}

/// Tells jobs that ended without running.
#[cold]
fn end_all(ends: Vec<(Arc<dyn Runnable>, EarlyEnd)>) {
    ends.into_iter().for_each(|(job, why)| job.end(why));
}

/// Starts the thread of a place.
pub(crate) type StartThread = fn(&Arc<SharedPool>, usize) -> io::Result<JoinHandle<()>>;

/// What a [`SharedPool`] is made of beside its core.
pub(crate) struct SharedParts {
    pub(crate) name: String,
    pub(crate) start: StartThread,
    pub(crate) pins: Vec<usize>,
    /// Of the threads; 0 as they are born.
    pub(crate) nice: u8,
    pub(crate) slices: SliceSettings,
    /// What workers call between slices.
    pub(crate) poller: Option<Poller>,
    /// Past its slice's end, a job that goes on for longer without a probe stalls, ns.
    pub(crate) stall_ns: u64,
    pub(crate) classes: ClassNames,
    pub(crate) learner: Option<KeyLearner>,
}

impl SharedPool {
    pub(crate) fn new(core: PoolCore, parts: SharedParts) -> Arc<Self> {
        Arc::new(Self {
            events: core.events(),
            core: Guarded::new(core),
            over: Arc::default(),
            clock: Clock::global(),
            start: parts.start,
            forks: fork::forks(),
            name: parts.name,
            pins: parts.pins,
            nice: parts.nice,
            slices: parts.slices,
            poller: Guarded::new(parts.poller),
            stall_ns: parts.stall_ns,
            classes: parts.classes,
            learner: parts.learner.map(Mutex::new),
            handles: Guarded::default(),
        })
    }

    /// Of handles that belong to this pool.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.classes.pool
    }

    /// The core to which this thread is pinned, if threads are.
    pub(crate) fn pin_of(&self, thread: usize) -> Option<usize> {
        self.pins.get(thread % self.pins.len().max(1)).copied()
    }

    /// Starts the thread of this place.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(self: &Arc<Self>, place: usize) -> io::Result<()> {
        let handle = (self.start)(self, place)?;
        self.keep(handle);
        Ok(())
    }

    /// Whether this is a child of the process whose the threads are. Its lock may be held by a thread that is not there.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        fork::forks() != self.forks
    }

    /// Releases the lock, and does what follows: tells jobs that ended, wakes threads.
    #[inline]
    pub(crate) fn settle(self: &Arc<Self>, mut core: MutexGuard<'_, PoolCore>) {
        let rouse = core.rouse();
        let dispatcher = core.rouse_dispatcher();
        let ends = (!core.ends.is_empty()).then(|| std::mem::take(&mut core.ends));
        let all_done = core.idle_waiters > 0 && core.is_idle();
        drop(core);
        if let Some(dispatcher) = dispatcher {
            dispatcher.unpark();
        }
        match rouse {
            Rouse::Nobody => {}
            Rouse::Wake(handle) => handle.rouse(),
            Rouse::Start(place) => self.replace(place),
        }
        if let Some(ends) = ends {
            end_all(ends);
        }
        if all_done {
            self.core.notify_all();
        }
    }

    /// Starts a thread in place of one that blocks. Where the system has none, the others go on.
    #[cold]
    fn replace(self: &Arc<Self>, place: usize) {
        if self.start(place).is_err() {
            self.core.lock().threads.leave(place);
        }
    }

    /// Keeps the handle of a thread, to wait for at the end.
    pub(crate) fn keep(&self, handle: JoinHandle<()>) {
        let mut handles = self.handles.lock();
        // A model's handle cannot say so.
        #[cfg(not(shuttle))]
        handles.retain(|handle| !handle.is_finished());
        handles.push(handle);
    }

    /// # Errors
    /// [`SubmitError`].
    #[inline]
    pub(crate) fn submit(
        self: &Arc<Self>,
        class: ClassId,
        job: Arc<dyn Runnable>,
    ) -> Result<(), SubmitError> {
        if self.is_forked() {
            return Err(SubmitError::Forked);
        }
        let inside = current::submits_inside(self.number());
        let now_ns = self.clock.now_ns();
        let mut core = self.core.lock();
        let accepted = core.submit(now_ns, class, job, inside);
        self.settle(core);
        accepted
    }

    /// The owner does not want the result any more.
    pub(crate) fn cancel(self: &Arc<Self>, class: ClassId, job: &Arc<dyn Runnable>) {
        if self.is_forked() {
            return;
        }
        let mut core = self.core.lock();
        core.cancel(class, job);
        self.settle(core);
    }

    /// A future was woken while it slept.
    pub(crate) fn wakes_up(self: &Arc<Self>, job: &Arc<dyn Runnable>) {
        if self.is_forked() {
            return;
        }
        let now_ns = self.clock.now_ns();
        let mut core = self.core.lock();
        let waits = core.wakes_up(now_ns, job);
        self.settle(core);
        if waits {
            job.nudge();
        }
    }

    /// Runs a job that waits here and now, within the job that waits for it. `false`: it does not wait.
    pub(crate) fn run_within(self: &Arc<Self>, class: ClassId, job: &Arc<dyn Runnable>) -> bool {
        let mut core = self.core.lock();
        let taken = core.take_here(class, job);
        self.settle(core);
        if !taken {
            return false;
        }
        let from_ns = self.clock.now_ns();
        let outer = current::begin(Some(Arc::clone(job)));
        let ran = job.run();
        current::begin(outer);
        let now_ns = self.clock.now_ns();
        let end = JobEnd {
            class,
            ran,
            cpu_ns: now_ns.saturating_sub(from_ns),
            chosen: None,
        };
        let mut core = self.core.lock();
        core.ended(now_ns, end, job);
        self.settle(core);
        if ran != RunEnd::Pending {
            job.publish();
        }
        true
    }

    /// What the calling thread, which begins, calls between slices.
    pub(crate) fn poller(&self) -> Option<Poller> {
        self.poller.lock().clone()
    }

    /// Waits until every accepted job has ended, or for so long. Whether they have.
    pub(crate) fn wait_idle(&self, most: Option<Duration>) -> bool {
        // One that no clock can tell is none.
        let deadline = most.and_then(|most| Instant::now().checked_add(most));
        let mut core = self.core.lock();
        core.idle_waiters += 1;
        let mut idle = core.is_idle();
        while !idle {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => core = self.core.wait_for(core, left),
                None => core = self.core.wait(core),
            }
            idle = core.is_idle();
        }
        core.idle_waiters -= 1;
        idle
    }

    /// See [`Pool::shutdown`](crate::Pool::shutdown).
    pub(crate) fn shutdown(self: &Arc<Self>, most: Duration) -> Result<(), ShutdownTimeout> {
        {
            let mut core = self.core.lock();
            core.phase = core.phase.max(PoolPhase::Draining);
        }
        // One of the pool's own threads would wait for itself.
        if !current::is_inside(self.number()) {
            self.wait_idle(Some(most));
        }
        let left = self.end();
        if left.running == 0 && left.abandoned == 0 {
            self.join();
            return Ok(());
        }
        Err(left)
    }

    /// Ends the pool now: what waits is abandoned, what runs is told and goes on to its end.
    pub(crate) fn end(self: &Arc<Self>) -> ShutdownTimeout {
        self.over.store(true, Ordering::Relaxed);
        let mut core = self.core.lock();
        let abandoned = core.abandon();
        let running = core.live();
        let threads = core.threads.wake_all();
        self.settle(core);
        threads.iter().for_each(IdleHandle::rouse);
        // It may hold the last handle of this pool, whose end is this again.
        let poller = self.poller.lock().take();
        drop(poller);
        ShutdownTimeout { abandoned, running }
    }

    /// Waits for the threads, which run nothing any more.
    fn join(self: &Arc<Self>) {
        if current::is_inside(self.number()) {
            return;
        }
        // Without the lock: a thread that is waited for may have started another, and keep it first.
        while let Some(handle) = self.next_handle() {
            let _ = handle.join();
        }
    }

    pub(crate) fn next_handle(&self) -> Option<JoinHandle<()>> {
        self.handles.lock().pop()
    }
}
