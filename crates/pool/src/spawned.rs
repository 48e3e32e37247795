//! A job that is a future: each poll is a slice, and what wakes it queues it again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::JoinError;
use crate::job::{
    EarlyEnd, JobFlags, Joined, NoValue, ResultSlot, RunEnd, Runnable, drop_quietly, ended, wake,
};
use crate::shared::SharedPool;

/// Where a future is between its polls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FutureRest {
    /// In its class's queue; a wake changes nothing.
    Queued,
    Polled,
    /// Woken while it is polled: it queues again at once.
    PolledAndWoken,
    Asleep,
}

/// See the [module](self).
pub(crate) struct SpawnedJob<F: Future> {
    flags: JobFlags,
    pool: Arc<SharedPool>,
    /// For its wakers.
    own: Weak<Self>,
    state: Mutex<SpawnedState<F>>,
}

struct SpawnedState<F: Future> {
    future: Option<Pin<Box<F>>>,
    rest: FutureRest,
    slot: ResultSlot<F::Output>,
}

impl<F> SpawnedJob<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    pub(crate) fn new(pool: Arc<SharedPool>, future: F) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            flags: JobFlags::new(true, true),
            pool,
            own: Weak::clone(own),
            state: Mutex::new(SpawnedState {
                future: Some(Box::pin(future)),
                rest: FutureRest::Queued,
                slot: ResultSlot::EMPTY,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, SpawnedState<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Runnable for SpawnedJob<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn run(&self) -> RunEnd {
        let future = {
            let mut state = self.state();
            state.rest = FutureRest::Polled;
            state.future.take()
        };
        let mut future = future.expect("a future is polled until its end");
        self.flags.set_begun();
        let own = self.own.upgrade();
        let waker = Waker::from(own.expect("whoever runs a job holds it"));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        let returned = match polled {
            Ok(Poll::Pending) => {
                self.state().future = Some(future);
                return RunEnd::Pending;
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(payload) => Err(payload),
        };
        drop_quietly(future);
        let (ran, result) = ended(returned);
        self.state().slot.put(result);
        ran
    }

    fn publish(&self) {
        let waker = self.state().slot.publish();
        wake(waker);
    }

    fn end(&self, why: EarlyEnd) {
        let future = self.state().future.take();
        drop_quietly(future);
        let waker = {
            let mut state = self.state();
            state.slot.put(Err(NoValue::Early(why)));
            state.slot.publish()
        };
        wake(waker);
    }

    fn falls_asleep(&self) -> bool {
        let mut state = self.state();
        let sleeps = state.rest == FutureRest::Polled;
        state.rest = if sleeps {
            FutureRest::Asleep
        } else {
            FutureRest::Queued
        };
        sleeps
    }

    fn nudge(&self) {
        let waker = self.state().slot.waker();
        wake(waker);
    }

    fn flags(&self) -> &JobFlags {
        &self.flags
    }
}

impl<F> Joined<F::Output> for SpawnedJob<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn take_result(&self) -> Option<Result<F::Output, JoinError>> {
        self.state().slot.take()
    }

    fn poll_result(&self, context: &mut Context<'_>) -> Poll<Result<F::Output, JoinError>> {
        let (poll, replaced) = self.state().slot.poll(context);
        drop_quietly(replaced);
        poll
    }
}

impl<F> Wake for SpawnedJob<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn wake(self: Arc<Self>) {
        let slept = {
            let mut state = self.state();
            let slept = state.rest == FutureRest::Asleep;
            state.rest = match state.rest {
                FutureRest::Asleep | FutureRest::Queued => FutureRest::Queued,
                FutureRest::Polled | FutureRest::PolledAndWoken => FutureRest::PolledAndWoken,
            };
            slept
        };
        if slept {
            let job: Arc<dyn Runnable> = Arc::clone(&self) as Arc<dyn Runnable>;
            self.pool.wakes_up(&job);
        }
    }
}
