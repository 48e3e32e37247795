//! One submitted job: its closure, then its result, and who waits for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::{JoinError, PanicPayload, ShedReason};

/// What a worker does with a job, whatever its type.
///
/// Every accepted job gets exactly one end: [`publish`](Self::publish) after a run that ended it, or [`end`](Self::end).
pub(crate) trait Runnable: Send + Sync {
    /// Runs the closure, or polls the future once. Its result stays hidden until it is published: the pool counts first.
    fn run(&self) -> RunEnd;
    /// Shows the result and wakes who awaits it.
    fn publish(&self);
    /// Ends a job that does not run, for this reason: drops its closure and wakes who awaits it.
    fn end(&self, why: EarlyEnd);
    /// A future that was polled without an end: whether it sleeps now. `false`: it was woken meanwhile and waits for a worker again.
    fn falls_asleep(&self) -> bool;
    /// Wakes who awaits the job although it has no result: a worker that waits for it may run it.
    fn nudge(&self);
    /// What the job's owner and its code tell each other.
    fn flags(&self) -> &JobFlags;
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunEnd {
    /// The closure returned, or the future was ready.
    Done,
    /// It panicked.
    Panicked,
    /// It stopped at a checkpoint, since it was cancelled.
    Stopped,
    /// The future is not ready.
    Pending,
}

/// The end of an accepted job that did not run to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EarlyEnd {
    Cancelled,
    Shed(ShedReason),
    Abandoned,
}

impl From<EarlyEnd> for JoinError {
    fn from(why: EarlyEnd) -> Self {
        match why {
            EarlyEnd::Cancelled => Self::Cancelled,
            EarlyEnd::Shed(reason) => Self::Shed(reason),
            EarlyEnd::Abandoned => Self::Abandoned,
        }
    }
}

/// Why an accepted job has no value: half as large as a [`JoinError`], and with it the job.
#[derive(Debug)]
pub(crate) enum NoValue {
    Panic(Box<dyn Any + Send>),
    Early(EarlyEnd),
}

impl From<NoValue> for JoinError {
    fn from(why: NoValue) -> Self {
        match why {
            NoValue::Panic(payload) => Self::Panic(PanicPayload::new(payload)),
            NoValue::Early(why) => why.into(),
        }
    }
}

/// A job with a result of this type.
pub(crate) trait Joined<T>: Runnable {
    /// The result, if it was published; it is taken.
    fn take_result(&self) -> Option<Result<T, JoinError>>;
    /// The result, once it was published; it is taken.
    fn poll_result(&self, context: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
}

/// What a job's owner and its code tell each other.
#[derive(Debug)]
pub(crate) struct JobFlags {
    /// The owner does not want the result any more.
    cancelled: AtomicBool,
    /// Whether a future was polled before.
    has_begun: AtomicBool,
    /// The place in the order of submission since it last queued; written under the pool's lock.
    sequence: AtomicU64,
    /// Whether a cancelled job stops at its next checkpoint.
    pub(crate) may_stop: bool,
    /// Whether it is a future, whose polls are the slices.
    pub(crate) is_future: bool,
}

impl JobFlags {
    pub(crate) fn new(may_stop: bool, is_future: bool) -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            sequence: AtomicU64::new(0),
            may_stop,
            is_future,
        }
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// A future is polled.
    #[inline]
    pub(crate) fn set_begun(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_sequence(&self, sequence: u64) {
        self.sequence.store(sequence, Ordering::Relaxed);
    }
}

/// The payload by which a cancelled job leaves its closure.
struct StoppedHere;

/// Leaves the closure of a job that was cancelled. No panic hook runs.
pub(crate) fn stop_here() -> ! {
    resume_unwind(Box::new(StoppedHere))
}

/// The end of a closure or of a poll.
pub(crate) fn ended<T>(returned: Result<T, Box<dyn Any + Send>>) -> (RunEnd, Result<T, NoValue>) {
    match returned {
        Ok(value) => (RunEnd::Done, Ok(value)),
        Err(payload) if payload.is::<StoppedHere>() => {
            (RunEnd::Stopped, Err(NoValue::Early(EarlyEnd::Cancelled)))
        }
        Err(payload) => (RunEnd::Panicked, Err(NoValue::Panic(payload))),
    }
}

/// A result on its way to who awaits it.
pub(crate) struct ResultSlot<T> {
    result: Option<Result<T, NoValue>>,
    is_published: bool,
    waker: Option<Waker>,
}

impl<T> ResultSlot<T> {
    pub(crate) const EMPTY: Self = Self {
        result: None,
        is_published: false,
        waker: None,
    };

    pub(crate) fn put(&mut self, result: Result<T, NoValue>) {
        self.result = Some(result);
    }

    /// From now on the result may be taken. Returns whom to wake once the lock is released.
    #[must_use]
    pub(crate) fn publish(&mut self) -> Option<Waker> {
        self.is_published = true;
        self.waker.take()
    }

    pub(crate) fn waker(&self) -> Option<Waker> {
        self.waker.clone()
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Result<T, JoinError>> {
        if !self.is_published {
            return None;
        }
        Some(match self.result.take() {
            Some(Ok(value)) => Ok(value),
            Some(Err(why)) => Err(why.into()),
            None => Err(JoinError::Cancelled),
        })
    }

    /// Also returns the waker that the context's takes the place of: to be dropped once the lock is released, since that is code of others.
    pub(crate) fn poll(
        &mut self,
        context: &Context<'_>,
    ) -> (Poll<Result<T, JoinError>>, Option<Waker>) {
        if let Some(result) = self.take() {
            return (Poll::Ready(result), None);
        }
        let new = context.waker();
        if self.waker.as_ref().is_some_and(|kept| kept.will_wake(new)) {
            return (Poll::Pending, None);
        }
        (Poll::Pending, self.waker.replace(new.clone()))
    }
}

/// A job that is a closure, and what is called in its place if it ends without having begun.
pub(crate) struct ClosureJob<F, E, T> {
    flags: JobFlags,
    state: Mutex<ClosureState<F, E, T>>,
}

struct ClosureState<F, E, T> {
    closure: Option<(F, E)>,
    slot: ResultSlot<T>,
}

impl<F, E, T> ClosureJob<F, E, T>
where
    F: FnOnce() -> T + Send + 'static,
    E: FnOnce(&JoinError) + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new(closure: F, otherwise: E, may_stop: bool) -> Arc<Self> {
        Arc::new(Self {
            flags: JobFlags::new(may_stop, false),
            state: Mutex::new(ClosureState {
                closure: Some((closure, otherwise)),
                slot: ResultSlot::EMPTY,
            }),
        })
    }

    /// No code of others runs under the lock but wakers' clones, so nothing poisons it.
    fn state(&self) -> MutexGuard<'_, ClosureState<F, E, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F, E, T> Runnable for ClosureJob<F, E, T>
where
    F: FnOnce() -> T + Send + 'static,
    E: FnOnce(&JoinError) + Send + 'static,
    T: Send + 'static,
{
    fn run(&self) -> RunEnd {
        let closure = self.state().closure.take();
        let (closure, otherwise) = closure.expect("a job runs once, and not after its end");
        drop_quietly(otherwise);
        let (ran, result) = ended(catch_unwind(AssertUnwindSafe(closure)));
        self.state().slot.put(result);
        ran
    }

    fn publish(&self) {
        let waker = self.state().slot.publish();
        wake(waker);
    }

    fn end(&self, why: EarlyEnd) {
        let closure = self.state().closure.take();
        if let Some((closure, otherwise)) = closure {
            drop_quietly(closure);
            // A panic there harms its own job only.
            let told = why.into();
            drop_quietly(catch_unwind(AssertUnwindSafe(|| otherwise(&told))));
        }
        let waker = {
            let mut state = self.state();
            state.slot.put(Err(NoValue::Early(why)));
            state.slot.publish()
        };
        wake(waker);
    }

    fn falls_asleep(&self) -> bool {
        unreachable!("a closure is no future")
    }

    fn nudge(&self) {
        let waker = self.state().slot.waker();
        wake(waker);
    }

    fn flags(&self) -> &JobFlags {
        &self.flags
    }
}

impl<F, E, T> Joined<T> for ClosureJob<F, E, T>
where
    F: FnOnce() -> T + Send + 'static,
    E: FnOnce(&JoinError) + Send + 'static,
    T: Send + 'static,
{
    fn take_result(&self) -> Option<Result<T, JoinError>> {
        self.state().slot.take()
    }

    fn poll_result(&self, context: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let (poll, replaced) = self.state().slot.poll(context);
        drop_quietly(replaced);
        poll
    }
}

/// Wakes; a waker that panics harms its own task only.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        drop_quietly(catch_unwind(AssertUnwindSafe(|| waker.wake())));
    }
}

/// Drops what a job captured. A destructor that panics harms its own job only.
#[inline]
pub(crate) fn drop_quietly<V>(value: V) {
    if !std::mem::needs_drop::<V>() {
        return;
    }
    // The payload's own destructor may panic too, with a payload of which nothing more is known.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value)))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        std::mem::forget(payload);
    }
}
