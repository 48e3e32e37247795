//! The service, and the ways in which it computes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use clap::ValueEnum;
use headway_pool::{ClassOptions, JoinError, Pool, PoolClass};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

use crate::compute::Compute;

/// What a point computes for.
pub(super) const POINT: Duration = Duration::from_micros(20);

/// What a report computes for.
pub(super) const REPORT: Duration = Duration::from_millis(20);

const WORKERS: usize = 2;

/// The nice value of a pool beside the threads that serve connections (docs/pool.md).
const NICE: u8 = 10;

/// Where requests compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Way {
    /// Nothing is computed: what client, connections and the machine take alone
    Nothing,
    /// In the handler itself
    Handler,
    /// Tokio's `spawn_blocking`
    SpawnBlocking,
    /// rayon, with a oneshot channel
    Rayon,
    /// Reports in a runtime of their own
    TwoRuntimes,
    /// `spawn_blocking`, one report at a time by a semaphore
    Semaphore,
    /// headway-pool, its default policy
    Headway,
    /// headway-pool, its default policy for jobs with checkpoints
    HeadwayCheckpoints,
    /// headway-pool, least remaining service first by what each class takes, with checkpoints
    HeadwaySrpt,
    /// headway-pool, least attained service first by levels, jobs interrupted at their checkpoints
    HeadwayMlfq,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing is computed",
            Self::Handler => "in the handler",
            Self::SpawnBlocking => "spawn_blocking",
            Self::Rayon => "rayon and a oneshot",
            Self::TwoRuntimes => "two runtimes",
            Self::Semaphore => "a semaphore for reports",
            Self::Headway => "headway-pool",
            Self::HeadwayCheckpoints => "headway-pool, checkpoints",
            Self::HeadwaySrpt => "headway-pool, srpt",
            Self::HeadwayMlfq => "headway-pool, mlfq",
        }
    }
}

/// A part of what is computed, between two checkpoints.
const PART: Duration = Duration::from_micros(1);

/// The service that listens, by number. What an earlier one was asked for is nobody's any more: threads of a dropped runtime or pool may have it still, and would
/// compute beside the next way.
static LISTENING: AtomicU64 = AtomicU64::new(0);

/// What a request of a service computes.
#[derive(Clone, Copy)]
struct Work {
    time: Duration,
    service: u64,
}

impl Work {
    /// Of the service that listens.
    fn asked_for(time: Duration) -> Self {
        let service = LISTENING.load(Ordering::Relaxed);
        Self { time, service }
    }

    fn is_report(self) -> bool {
        self.time == REPORT
    }
}

/// Computes what takes so long where nobody interrupts, with checkpoints; outside of a pool they are none. It is the same work whoever runs beside it: a loop that
/// waited for a clock would be done sooner the more of them share a core.
fn compute(work: Work) -> StatusCode {
    let part = Compute::for_ns(PART.as_nanos() as u64);
    for _ in 0..work.time.as_nanos() / PART.as_nanos() {
        if LISTENING.load(Ordering::Relaxed) != work.service {
            return StatusCode::GONE;
        }
        part.run();
        let _ = headway_pool::checkpoint();
    }
    StatusCode::OK
}

/// The status of a job's end.
fn status_of(ended: Result<StatusCode, JoinError>) -> StatusCode {
    ended.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

/// A service that listens until it is dropped.
pub(super) struct Service {
    address: SocketAddr,
    /// Dropped last, without waiting for what still computes.
    runtimes: Vec<Runtime>,
}

impl Service {
    /// # Errors
    /// When the system refuses threads or a socket.
    pub(super) fn start(way: Way) -> Result<Self> {
        let runtime = || {
            Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .enable_all()
                .build()
        };
        let mut runtimes = vec![runtime()?];
        let router = match way {
            Way::Nothing => routes(|_| async { StatusCode::OK }),
            Way::Handler => routes(|work| async move { compute(work) }),
            Way::SpawnBlocking => routes(|work| async move {
                let ended = tokio::task::spawn_blocking(move || compute(work)).await;
                ended.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }),
            Way::Rayon => {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(WORKERS)
                    .build()?;
                let pool = Arc::new(pool);
                routes(move |work| {
                    let (sender, receiver) = oneshot::channel();
                    pool.spawn(move || {
                        let _ = sender.send(compute(work));
                    });
                    async move { receiver.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) }
                })
            }
            Way::TwoRuntimes => {
                runtimes.push(runtime()?);
                let heavy = runtimes[1].handle().clone();
                routes(move |work| {
                    let report = || heavy.spawn(async move { compute(work) });
                    let job = work.is_report().then(report);
                    async move {
                        match job {
                            Some(job) => job.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                            None => compute(work),
                        }
                    }
                })
            }
            Way::Semaphore => {
                let reports = Arc::new(Semaphore::new(1));
                routes(move |work| {
                    let reports = Arc::clone(&reports);
                    async move {
                        let _permit = match work.is_report() {
                            true => reports.acquire_owned().await.ok(),
                            false => None,
                        };
                        let ended = tokio::task::spawn_blocking(move || compute(work)).await;
                        ended.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
                    }
                })
            }
            Way::Headway => by_pool(Pool::builder())?,
            Way::HeadwayCheckpoints => by_pool(Pool::builder().checkpoints())?,
            Way::HeadwaySrpt => by_pool(Pool::builder().checkpoints().policy("srpt"))?,
            Way::HeadwayMlfq => by_pool(Pool::builder().checkpoints().policy("mlfq"))?,
        };
        let listener = runtimes[0].block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtimes[0].spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, runtimes })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        LISTENING.fetch_add(1, Ordering::Relaxed);
        for runtime in self.runtimes.drain(..) {
            runtime.shutdown_background();
        }
    }
}

/// Points and reports, each computed this way.
fn routes<F, R>(way: F) -> Router
where
    F: Fn(Work) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = StatusCode> + Send + 'static,
{
    let point = way.clone();
    Router::new()
        .route("/point", get(move || point(Work::asked_for(POINT))))
        .route("/report", get(move || way(Work::asked_for(REPORT))))
}

/// No threshold is set by hand: neither limit nor mean.
fn by_pool(builder: headway_pool::PoolBuilder) -> Result<Router> {
    let pool = builder
        .workers(WORKERS)
        .nice(NICE)
        .class("point", ClassOptions::new())
        .class("report", ClassOptions::new())
        .build()?;
    let (point, report): (PoolClass, PoolClass) = (pool.class("point")?, pool.class("report")?);
    Ok(routes(move |work| {
        let class = if work.is_report() { report } else { point };
        let job = pool.submit(class, move || compute(work));
        async move { status_of(job.await) }
    }))
}
