//! What runs a closure on another thread and gives its result back.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use anyhow::Result;
use clap::ValueEnum;
use headway_pool::{ClassOptions, JobFuture, Pool, PoolBuilder, PoolClass, PoolLayout};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, coop};

/// A pool that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// headway-pool, its default policy
    Headway,
    /// headway-pool, first come first served
    HeadwayFcfs,
    /// headway-pool, its default policy for jobs with checkpoints
    HeadwayCheckpoints,
    /// headway-pool, least remaining service first by what each class takes, jobs interrupted at their checkpoints
    HeadwaySrpt,
    /// headway-pool, least attained service first by levels, jobs interrupted at their checkpoints
    HeadwayMlfq,
    /// headway-pool, its default policy, its dispatcher on a thread of its own
    HeadwayDedicated,
    /// rayon, with a oneshot channel
    Rayon,
    /// Tokio's `spawn_blocking`
    SpawnBlocking,
    /// A task of Tokio's runtime
    Tokio,
}

/// A pool that is ready.
pub(crate) enum Contender {
    Headway {
        pool: Pool,
        short: PoolClass,
        long: PoolClass,
    },
    Rayon(rayon::ThreadPool),
    SpawnBlocking(tokio::runtime::Runtime),
    Tokio(tokio::runtime::Runtime),
}

/// A result on its way.
pub(crate) enum Pending {
    Headway(JobFuture<()>),
    Oneshot(oneshot::Receiver<()>),
    /// Without Tokio's budget for a task: whoever follows many results is no task.
    Task(coop::Unconstrained<JoinHandle<()>>),
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Headway => "headway-pool",
            Self::HeadwayFcfs => "headway-pool, c-fcfs",
            Self::HeadwayCheckpoints => "headway-pool, checkpoints",
            Self::HeadwaySrpt => "headway-pool, srpt",
            Self::HeadwayMlfq => "headway-pool, mlfq",
            Self::HeadwayDedicated => "headway-pool, dedicated",
            Self::Rayon => "rayon and a oneshot",
            Self::SpawnBlocking => "spawn_blocking",
            Self::Tokio => "Tokio task",
        }
    }

    /// Starts it with so many workers.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn start(self, workers: usize) -> Result<Contender> {
        self.start_with(workers, |builder| builder)
    }

    /// Starts it with what else is said of a pool of Headway's.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn start_with(
        self,
        workers: usize,
        say: impl FnOnce(PoolBuilder) -> PoolBuilder,
    ) -> Result<Contender> {
        let headway = |builder| headway(say(builder), workers);
        let tokio = || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder
                .worker_threads(workers)
                .max_blocking_threads(workers)
                .build()
        };
        Ok(match self {
            Self::Headway => headway(Pool::builder())?,
            Self::HeadwayFcfs => headway(Pool::builder().policy("c-fcfs"))?,
            Self::HeadwayCheckpoints => headway(Pool::builder().checkpoints())?,
            Self::HeadwaySrpt => headway(Pool::builder().policy("srpt,size=profile"))?,
            Self::HeadwayMlfq => headway(Pool::builder().policy("mlfq"))?,
            Self::HeadwayDedicated => headway(Pool::builder().layout(PoolLayout::Dedicated))?,
            Self::Rayon => Contender::Rayon(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(workers)
                    .build()?,
            ),
            Self::SpawnBlocking => Contender::SpawnBlocking(tokio()?),
            Self::Tokio => Contender::Tokio(tokio()?),
        })
    }
}

fn headway(builder: PoolBuilder, workers: usize) -> Result<Contender> {
    let named = ["short", "long"];
    let builder = builder.workers(workers).capacity(1 << 20);
    let builder = named.iter().fold(builder, |builder, name| {
        builder.class(name, ClassOptions::new())
    });
    let pool = builder.build()?;
    let [short, long] = named.map(|name| pool.class(name));
    let (short, long) = (short?, long?);
    Ok(Contender::Headway { pool, short, long })
}

impl Contender {
    /// Submits a closure.
    #[inline]
    pub(crate) fn submit(&self, is_long: bool, work: impl FnOnce() + Send + 'static) -> Pending {
        match self {
            Self::Headway {
                pool, short, long, ..
            } => Pending::Headway(pool.submit(if is_long { *long } else { *short }, work)),
            Self::Rayon(pool) => {
                let (sender, receiver) = oneshot::channel();
                pool.spawn(move || {
                    work();
                    let _ = sender.send(());
                });
                Pending::Oneshot(receiver)
            }
            Self::SpawnBlocking(runtime) => Pending::task(runtime.spawn_blocking(work)),
            Self::Tokio(runtime) => Pending::task(runtime.spawn(async move { work() })),
        }
    }
}

impl Future for Pending {
    type Output = ();

    /// # Panics
    /// When the job did not end well.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Self::Headway(job) => {
                let polled = Pin::new(job).poll(context);
                polled.map(|result| result.expect("the job ends"))
            }
            Self::Oneshot(receiver) => {
                let polled = Pin::new(receiver).poll(context);
                polled.map(|result| result.expect("the job ends"))
            }
            Self::Task(task) => {
                let polled = Pin::new(task).poll(context);
                polled.map(|result| result.expect("the job ends"))
            }
        }
    }
}

impl Pending {
    pub(crate) fn task(task: JoinHandle<()>) -> Self {
        Self::Task(coop::unconstrained(task))
    }

    /// Blocks until the result is there.
    ///
    /// # Panics
    /// When the job did not end well.
    pub(crate) fn wait(self) {
        match self {
            Self::Headway(job) => job.wait().expect("the job ends"),
            other => block_on(other),
        }
    }
}

/// The same executor for all: park until woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unparks(Thread);
    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park();
    }
}
