//! Futures of Tokio's on threads that are not.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A future that is polled within the runtime in which it was made, if that was one of Tokio's.
pub(crate) struct InRuntime<F> {
    runtime: Option<Handle>,
    /// Pinned, so that no `unsafe` projection is needed; the job holds it in a box anyway.
    future: Pin<Box<F>>,
}

impl<F> InRuntime<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            runtime: Handle::try_current().ok(),
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for InRuntime<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _entered = this.runtime.as_ref().map(Handle::enter);
        this.future.as_mut().poll(context)
    }
}
