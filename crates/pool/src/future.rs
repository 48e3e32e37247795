//! The result of a job that is on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use headway_policy::ClassId;
use headway_sync::thread::{self, Thread};
use headway_sync::thread_local;

use crate::blocking::blocking;
use crate::current;
use crate::error::{JoinError, SubmitError};
use crate::job::{Joined, Runnable};
use crate::shared::SharedPool;

/// The result of a submitted job: await it in any executor, or [`wait`](Self::wait) for it.
///
/// Dropping it cancels the job. One that waits leaves the queue at once, and its closure is dropped here. One that runs goes on and sees
/// [`cancelled`](crate::cancelled); its place in every limit is free when it ends. [`detach`](Self::detach) lets the job go on.
///
/// A closure of the same pool that polls it runs the job itself if that still waits, so jobs that wait for jobs do not exhaust the workers.
#[must_use = "dropping it cancels the job; call detach() to let it run"]
pub struct JobFuture<T> {
    state: FutureState<T>,
}

enum FutureState<T> {
    Refused(SubmitError),
    Accepted(Accepted<T>),
    /// The result was taken, or the job was let go.
    Over,
}

struct Accepted<T> {
    pool: Arc<SharedPool>,
    class: ClassId,
    job: Arc<dyn Joined<T>>,
}

impl<T: Send + 'static> JobFuture<T> {
    pub(crate) fn refused(refused: SubmitError) -> Self {
        Self {
            state: FutureState::Refused(refused),
        }
    }

    pub(crate) fn accepted(pool: Arc<SharedPool>, class: ClassId, job: Arc<dyn Joined<T>>) -> Self {
        Self {
            state: FutureState::Accepted(Accepted { pool, class, job }),
        }
    }
}

impl<T> JobFuture<T> {
    /// Why the job was not accepted; `None` where it was.
    #[must_use]
    pub fn refusal(&self) -> Option<&SubmitError> {
        match &self.state {
            FutureState::Refused(refused) => Some(refused),
            FutureState::Accepted(_) | FutureState::Over => None,
        }
    }

    /// Lets the job go on without anybody who awaits it.
    pub fn detach(mut self) {
        self.state = FutureState::Over;
    }

    /// Blocks the calling thread until the job has ended. A worker of the same pool runs the job itself if it still waits.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn wait(mut self) -> Result<T, JoinError> {
        if let Some(result) = self.take_result() {
            return result;
        }
        let waker = this_thread();
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = self.poll_within(&mut context, true) {
                return result;
            }
            pause(self.may_need_a_worker());
        }
    }

    /// The result, if it is there: nobody need be woken for it.
    #[inline]
    fn take_result(&mut self) -> Option<Result<T, JoinError>> {
        let FutureState::Accepted(accepted) = &self.state else {
            return None;
        };
        if accepted.pool.is_forked() {
            return None;
        }
        let result = accepted.job.take_result()?;
        self.state = FutureState::Over;
        Some(result)
    }

    /// Whether the end that is waited for may take a worker more than those that run now: a future that sleeps may wait for a job that nobody has begun.
    fn may_need_a_worker(&self) -> bool {
        match &self.state {
            FutureState::Accepted(accepted) => accepted.job.flags().is_future,
            FutureState::Refused(_) | FutureState::Over => false,
        }
    }

    /// `helps`: where the job waits, a worker of the pool runs it here.
    fn poll_within(
        &mut self,
        context: &mut Context<'_>,
        helps: bool,
    ) -> Poll<Result<T, JoinError>> {
        if let FutureState::Accepted(accepted) = &self.state {
            let polled = accepted.poll(context, helps);
            if polled.is_ready() {
                self.state = FutureState::Over;
            }
            return polled;
        }
        match std::mem::replace(&mut self.state, FutureState::Over) {
            FutureState::Refused(refused) => Poll::Ready(Err(JoinError::Refused(refused))),
            FutureState::Accepted(_) | FutureState::Over => panic!("a result is taken once"),
        }
    }
}

impl<T> Accepted<T> {
    fn poll(&self, context: &mut Context<'_>, helps: bool) -> Poll<Result<T, JoinError>> {
        if self.pool.is_forked() {
            return Poll::Ready(Err(SubmitError::Forked.into()));
        }
        let helps = helps && current::is_inside(self.pool.number());
        loop {
            let poll = self.job.poll_result(context);
            if poll.is_ready() || !helps {
                return poll;
            }
            // A future that was woken while it was polled waits again, and nobody else may be there to run it.
            let job: Arc<dyn Runnable> = Arc::clone(&self.job) as Arc<dyn Runnable>;
            if !self.pool.run_within(self.class, &job) {
                return poll;
            }
        }
    }
}

impl<T> Unpin for JobFuture<T> {}

impl<T> Future for JobFuture<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let helps = match &self.state {
            FutureState::Accepted(job) => current::in_closure_of(job.pool.number()),
            FutureState::Refused(_) | FutureState::Over => false,
        };
        self.poll_within(context, helps)
    }
}

impl<T> Drop for JobFuture<T> {
    fn drop(&mut self) {
        if let FutureState::Accepted(Accepted { pool, class, job }) = &self.state {
            let job: Arc<dyn Runnable> = Arc::clone(job) as Arc<dyn Runnable>;
            pool.cancel(*class, &job);
        }
    }
}

impl<T> fmt::Debug for JobFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobFuture").finish_non_exhaustive()
    }
}

/// Unparks the thread that waits.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unparks(thread::current())));
}

/// The waker of the calling thread.
fn this_thread() -> Waker {
    let kept = WAKER.try_with(Clone::clone);
    // The destructor of another thread-local value may wait too.
    kept.unwrap_or_else(|_| Waker::from(Arc::new(Unparks(thread::current()))))
}

/// Waits for a wake. A job that can be interrupted leaves its worker to others, among which may be the one for which it waits; one that cannot
/// does so where that may need a worker.
fn pause(may_need_a_worker: bool) {
    if current::owns_thread_state() {
        blocking(thread::park);
    } else if headway_fiber::in_fiber() {
        current::set_waits();
        headway_fiber::yield_now();
    } else if may_need_a_worker {
        blocking(thread::park);
    } else {
        thread::park();
    }
}
