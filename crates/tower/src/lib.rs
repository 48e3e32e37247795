//! A [`tower`](https://docs.rs/tower) layer that runs each request in a [`Pool`], in the class that a function of the program gives it.
//!
//! The inner service's future is [spawned](Pool::spawn) there: each of its polls is a job for the pool's policy. So a handler that computes keeps a worker of
//! the pool, not a thread that serves connections, and short requests do not wait behind long ones. Tokio's runtime is entered for each poll and where
//! the future is dropped, so that handlers and their destructors may use its timers and sockets, and spawn.
//!
//! A request that the pool refuses is answered at once: `503 Service Unavailable` with `Retry-After`, or for gRPC the status `RESOURCE_EXHAUSTED`. One whose
//! class the pool does not have is a mistake of the program: `500 Internal Server Error`, or `INTERNAL`, and the first is told on standard error.
//!
//! When a client goes away, its request is cancelled: one that waits leaves the pool's queue, one that runs ends at its next await.
//!
//! ```no_run
#![doc = include_str!("../examples/axum.rs")]
//! ```

mod response;
mod runtime;

pub use response::ScheduledResponse;

use std::future::Future;
use std::task::{Context, Poll};

use headway_pool::{NamesClass, Pool};
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::response::{MistakeNotice, Protocol, ScheduledJob};
use crate::runtime::InRuntime;

/// Runs the requests of the service below it in a pool.
#[derive(Clone, Debug)]
pub struct ScheduleLayer<C> {
    pool: Pool,
    classify: C,
    notice: MistakeNotice,
}

impl<C> ScheduleLayer<C> {
    /// A layer over this pool. `classify` says a request's class, by its name or its [handle](Pool::class): from the route, a header, anything.
    pub fn new<B, N>(pool: &Pool, classify: C) -> Self
    where
        C: Fn(&Request<B>) -> N,
        N: NamesClass,
    {
        Self {
            pool: pool.clone(),
            classify,
            notice: MistakeNotice::default(),
        }
    }
}

impl<S, C: Clone> Layer<S> for ScheduleLayer<C> {
    type Service = ScheduledService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        ScheduledService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A service whose requests run in a pool: what a [`ScheduleLayer`] makes.
#[derive(Clone, Debug)]
pub struct ScheduledService<S, C> {
    inner: S,
    layer: ScheduleLayer<C>,
}

impl<S, C, N, B, R> Service<Request<B>> for ScheduledService<S, C>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    C: Fn(&Request<B>) -> N,
    N: NamesClass,
    B: Send + 'static,
    R: Default + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ScheduledResponse<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let ScheduleLayer {
            pool,
            classify,
            notice,
        } = &self.layer;
        let (class, protocol) = (classify(&request), Protocol::of(&request));
        // The service that is ready takes the request, and its clone gets ready for the next.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let job: ScheduledJob<R, S::Error> =
            pool.spawn(class, InRuntime::new(begun(ready, request)));
        ScheduledResponse::new(job, protocol, notice.clone())
    }
}

/// The inner service's future, begun by a worker of the pool: some services compute in `call`.
async fn begun<S, B, R>(mut service: S, request: Request<B>) -> Result<Response<R>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Future<Output = Result<Response<R>, S::Error>>,
{
    service.call(request).await
}
