//! Jobs that wait for something beside the processor.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

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
/// At most [`blocking_threads`](crate::PoolBuilder::blocking_threads) threads block so at a time; one more keeps its worker, and so does every job
/// on [plain fibers](crate::PoolBuilder::plain_fibers). Both are counted ([`PoolStats::blocked_in_place`](crate::PoolStats::blocked_in_place)). Outside of jobs it only calls `wait`.
pub fn blocking<R>(wait: impl FnOnce() -> R) -> R {
    let _left = POOL.with_borrow(Weak::upgrade).and_then(LeftWorker::leave);
    wait()
}

/// A thread that left its worker, and blocks.
struct LeftWorker(Arc<SharedPool>);

impl LeftWorker {
    fn leave(pool: Arc<SharedPool>) -> Option<Self> {
        let place = current::take_place()?;
        let now_ns = pool.clock.now_ns();
        let mut core = pool.core.lock();
        if !core.threads.may_block() {
            core.blocked_in_place += 1;
            current::set_place(Some(place));
            return None;
        }
        let WorkerPlace {
            chosen,
            attained_ns,
            from_ns,
            turns,
        } = place;
        if let Some(turns) = turns {
            turns.rest();
        }
        core.threads.blocked += 1;
        core.leave_worker(now_ns, chosen, attained_ns + now_ns.saturating_sub(from_ns));
        pool.settle(core);
        Some(Self(pool))
    }
}

impl Drop for LeftWorker {
    fn drop(&mut self) {
        let mut core = self.0.core.lock();
        core.threads.blocked -= 1;
        self.0.settle(core);
    }
}
