//! Jobs that wait for something beside the processor.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

#[cfg(shuttle)]
use headway_sync::ModelLocal;
use headway_sync::thread_local;

use crate::current::{self, WorkerPlace};
use crate::shared::SharedPool;

thread_local! {
    /// The pool of a worker's thread, or of a fiber with a thread's state, which the pool owns.
    static POOL: RefCell<Weak<SharedPool>> = const { RefCell::new(Weak::new()) };
}

/// The calling thread is one of the pool's from now on.
pub(crate) fn join(pool: Weak<SharedPool>) {
    POOL.set(pool);
}

/// Runs `wait`, which blocks (a file, a lock, another service), without keeping the job's worker: another thread takes the worker's place. The job
/// goes on in its thread afterwards, beside the workers, until it ends.
///
/// At most [`blocking_threads`](crate::PoolBuilder::blocking_threads) jobs at a time are beside the workers so; one more keeps its worker, and so does every job
/// on [plain fibers](crate::PoolBuilder::plain_fibers). Both are counted ([`PoolStats::blocked_in_place`](crate::PoolStats::blocked_in_place)). Outside of jobs, and in a job that left its
/// worker before, it only calls `wait`.
pub fn blocking<R>(wait: impl FnOnce() -> R) -> R {
    // A thread that destroys its variables is no worker.
    let pool = POOL.try_with(|pool| pool.borrow().upgrade());
    if let Ok(Some(pool)) = pool
        && let Some(place) = current::take_place()
    {
        leave(&pool, place);
    }
    wait()
}

/// Leaves the worker to another thread until the job ends, if one more may.
fn leave(pool: &Arc<SharedPool>, place: WorkerPlace) {
    let now_ns = pool.clock.now_ns();
    let mut core = pool.core.lock();
    if !core.threads.leave_worker() {
        core.blocked_in_place += 1;
        current::set_place(Some(place));
        return;
    }
    if let Some(turns) = &place.turns {
        turns.rest();
    }
    // The thread counts as beside the workers until the job's end: if it counted as a worker as soon as it is awake, an idle stand-in would leave, and what comes
    // then would wait for this job, which may block again.
    let cpu_ns = place.attained_ns + now_ns.saturating_sub(place.from_ns);
    core.leave_worker(now_ns, place.chosen, cpu_ns);
    pool.settle(core);
}
