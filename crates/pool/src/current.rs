//! The job that the calling thread runs, and its place among the workers.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headway_fiber::WorkerTurns;
use headway_machine::thread::CpuClock;
use headway_sync::thread_local;
#[cfg(shuttle)]
use headway_sync::{ModelLocal, ModelLocalBorrow, ModelLocalCopy};

use crate::decisions::Chosen;
use crate::error::OutsidePool;
use crate::job::{Runnable, stop_here};

thread_local! {
    /// The number of a worker's pool.
    static POOL: Cell<Option<u64>> = const { Cell::new(None) };
    /// Whether that pool has ended.
    static OVER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
    /// Whether the job on the fiber that just left this thread waits for another job.
    static WAITS: Cell<bool> = const { Cell::new(false) };
    /// Whether this worker polls: what it submits then comes from outside.
    static POLLS: Cell<bool> = const { Cell::new(false) };
    static RUNNING: RunningJob = const {
        RunningJob {
            innermost: RefCell::new(None),
            place: Cell::new(None),
        }
    };
    /// The same for a fiber that owns a thread's state, since it goes from worker to worker.
    static DESK: RefCell<Option<Arc<JobDesk>>> = const { RefCell::new(None) };
}

/// What a thread, or a fiber that owns a thread's state, runs.
struct RunningJob {
    innermost: RefCell<Option<Arc<dyn Runnable>>>,
    /// The outermost job's worker, unless it left that.
    place: Cell<Option<WorkerPlace>>,
}

/// A job's worker, and the service that the job had there.
pub(crate) struct WorkerPlace {
    pub(crate) chosen: Chosen,
    /// Service before this slice, ns.
    pub(crate) attained_ns: u64,
    /// When the slice began.
    pub(crate) from_ns: u64,
    /// The worker's turns, where somebody watches these.
    pub(crate) turns: Option<Arc<WorkerTurns<CpuClock>>>,
}

/// Where a worker and the job on a fiber that owns a thread's state tell each other whether the job has the worker still.
#[derive(Default)]
pub(crate) struct JobDesk(Mutex<Option<WorkerPlace>>);

impl JobDesk {
    /// Returns what was there.
    pub(crate) fn set_place(&self, place: Option<WorkerPlace>) -> Option<WorkerPlace> {
        std::mem::replace(
            &mut self.0.lock().unwrap_or_else(PoisonError::into_inner),
            place,
        )
    }

    pub(crate) fn has_place(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}

/// The calling fiber owns a thread's state, and this is its desk.
pub(crate) fn sit_at(desk: Arc<JobDesk>) {
    DESK.set(Some(desk));
}

/// Whether the caller is a job on a fiber that owns a thread's state.
pub(crate) fn owns_thread_state() -> bool {
    DESK.try_with(|desk| desk.borrow().is_some())
        .unwrap_or(false)
}

/// The calling thread is one of the pool's of this number from now on; `over` says once that pool has ended.
pub(crate) fn join(number: u64, over: Arc<AtomicBool>) {
    POOL.set(Some(number));
    OVER.set(Some(over));
}

/// Whether the calling thread is one of this pool's.
#[inline]
pub(crate) fn is_inside(number: u64) -> bool {
    POOL.get() == Some(number)
}

/// Whether what the calling thread submits comes from the pool's own jobs.
pub(crate) fn submits_inside(number: u64) -> bool {
    is_inside(number) && !POLLS.get()
}

/// The calling worker polls, within no job.
pub(crate) fn polling<R>(poll: impl FnOnce() -> R) -> R {
    let interrupted = begin(None);
    POLLS.set(true);
    let result = poll();
    POLLS.set(false);
    begin(interrupted);
    result
}

/// Whether the calling thread runs a closure of this pool, rather than a future, which may be told to wait.
pub(crate) fn in_closure_of(number: u64) -> bool {
    is_inside(number) && with_innermost(|job| !job.flags().is_future) == Some(true)
}

/// What `look` sees in the innermost job; `None` outside of jobs, as in a thread that destroys its variables.
#[inline]
fn with_innermost<R>(look: impl FnOnce(&dyn Runnable) -> R) -> Option<R> {
    let looked = RUNNING.try_with(|running| running.innermost.borrow().as_deref().map(look));
    looked.ok().flatten()
}

/// The job on this fiber waits for another one: it makes way at once.
pub(crate) fn set_waits() {
    WAITS.set(true);
}

/// Whether the fiber that just left this thread does so.
pub(crate) fn waits_here() -> bool {
    WAITS.take()
}

/// The job runs from now on. Returns the one within which it runs.
#[inline]
pub(crate) fn begin(job: Option<Arc<dyn Runnable>>) -> Option<Arc<dyn Runnable>> {
    RUNNING.with(|running| running.innermost.replace(job))
}

/// A thread that runs nothing runs the job as this worker, on its own stack: no desk is looked for.
#[inline]
pub(crate) fn begin_outermost(job: Arc<dyn Runnable>, place: WorkerPlace) {
    RUNNING.with(|running| {
        running.place.set(Some(place));
        running.innermost.replace(Some(job));
    });
}

/// The job is over. Returns it, and its worker unless it left that.
#[inline]
pub(crate) fn end_outermost() -> (Option<Arc<dyn Runnable>>, Option<WorkerPlace>) {
    RUNNING.with(|running| (running.innermost.take(), running.place.take()))
}

/// The thread runs a job as this worker, or as none.
#[inline]
pub(crate) fn set_place(place: Option<WorkerPlace>) {
    DESK.with_borrow(|desk| match desk {
        Some(desk) => drop(desk.set_place(place)),
        None => RUNNING.with(|running| running.place.set(place)),
    });
}

/// The worker of the outermost job; afterwards it has none.
#[inline]
pub(crate) fn take_place() -> Option<WorkerPlace> {
    let own = |running: &RunningJob| running.place.take();
    let taken = DESK.try_with(|desk| match &*desk.borrow() {
        Some(desk) => desk.set_place(None),
        None => RUNNING.try_with(own).ok().flatten(),
    });
    // A thread that destroys its variables is no worker.
    taken.ok().flatten()
}

/// The outermost job's service so far, ns; `None` where it has no worker.
pub(crate) fn attained_ns(now_ns: u64) -> Option<u64> {
    let place = take_place()?;
    let attained_ns = place.attained_ns + now_ns.saturating_sub(place.from_ns);
    set_place(Some(place));
    Some(attained_ns)
}

/// Whether the running job's result is not wanted any more: its future was dropped, or the pool has ended. A long job asks now and then, and returns
/// early. `false` outside of jobs.
///
/// ```
/// assert!(!headway_pool::cancelled());
/// ```
#[must_use]
pub fn cancelled() -> bool {
    let over = || {
        let over = OVER.try_with(|over| {
            let over = over.borrow();
            over.as_ref()
                .is_some_and(|over| over.load(Ordering::Relaxed))
        });
        over.unwrap_or(false)
    };
    with_innermost(|job| job.flags().is_cancelled() || over()).unwrap_or(false)
}

/// A place where the policy may interrupt the running job, and where a job stops that was submitted by [`submit_cancellable`](crate::Pool::submit_cancellable) and is [`cancelled`]: it unwinds from here.
///
/// # Errors
/// [`OutsidePool`]: the calling thread runs no job.
#[inline]
pub fn checkpoint() -> Result<(), OutsidePool> {
    let may_stop = with_innermost(|job| job.flags().may_stop);
    // A destructor, or a panic hook, that stops would end the process.
    if may_stop.ok_or(OutsidePool)? && cancelled() && !std::thread::panicking() {
        stop_here();
    }
    headway_fiber::checkpoint();
    Ok(())
}

/// Iterators whose every step is a [`checkpoint`].
pub trait Checkpointed: Iterator + Sized {
    /// The same items, with a checkpoint before each; outside of jobs they are none.
    ///
    /// ```
    /// use headway_pool::Checkpointed;
    ///
    /// assert_eq!((1..=4).checkpointed().sum::<u32>(), 10);
    /// ```
    fn checkpointed(self) -> impl Iterator<Item = Self::Item> {
        self.inspect(|_| {
            // Elsewhere nobody interrupts, and the loop is the same.
            let _ = checkpoint();
        })
    }
}

impl<I: Iterator> Checkpointed for I {}
