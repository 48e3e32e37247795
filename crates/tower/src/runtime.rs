//! Futures of Tokio's on threads that are not.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{EnterGuard, Handle};

/// A value that is dropped within the runtime in which it was made, if that was one of Tokio's: its destructors may spawn and use timers there.
#[derive(Debug)]
pub(crate) struct TokioOwned<T> {
    runtime: Option<Handle>,
    /// Taken by `into_inner` and by the drop alone.
    value: Option<T>,
}

impl<T> TokioOwned<T> {
    fn new(runtime: Option<Handle>, value: T) -> Self {
        Self {
            runtime,
            value: Some(value),
        }
    }

    /// The value, for a caller that is in the runtime itself.
    pub(crate) fn into_inner(mut self) -> T {
        self.value.take().expect("only the drop takes it before")
    }

    /// Enters the runtime.
    fn enter(runtime: Option<&Handle>) -> Option<EnterGuard<'_>> {
        // A thread whose thread-local variables are gone cannot enter one.
        let ends = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        runtime.filter(|_| !ends).map(Handle::enter)
    }
}

impl<T> Drop for TokioOwned<T> {
    fn drop(&mut self) {
        if self.value.is_some() {
            let _entered = Self::enter(self.runtime.as_ref());
            self.value = None;
        }
    }
}

/// A future that is polled and dropped within the runtime in which it was made, and so is its result until somebody takes it.
pub(crate) struct InRuntime<F> {
    /// Pinned, so that no `unsafe` projection is needed; the job holds it in a box anyway.
    future: TokioOwned<Pin<Box<F>>>,
}

impl<F> InRuntime<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: TokioOwned::new(Handle::try_current().ok(), Box::pin(future)),
        }
    }
}

impl<F: Future> Future for InRuntime<F> {
    type Output = TokioOwned<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let TokioOwned { runtime, value } = &mut self.future;
        let future = value.as_mut().expect("only the drop takes it");
        let polled = {
            let _entered = runtime.as_ref().map(Handle::enter);
            future.as_mut().poll(context)
        };
        polled.map(|output| TokioOwned::new(runtime.clone(), output))
    }
}
