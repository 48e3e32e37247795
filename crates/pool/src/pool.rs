//! The pool as programs hold it.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use headway_ops::doors::{BoundDoors, DoorError, OpenDoors};
use headway_ops::metrics;
use headway_ops::subject::AskedSubject;
use headway_policy::ClassId;
use prometheus_client::collector::Collector;

use crate::builder::PoolBuilder;
use crate::class::{NamesClass, PoolClass};
use crate::current;
use crate::error::{JoinError, PoolWarning, ShutdownTimeout, SubmitError};
use crate::future::JobFuture;
use crate::job::ClosureJob;
use crate::shared::SharedPool;
use crate::spawned::SpawnedJob;
use crate::stats::PoolStats;

/// A pool of threads that run closures in the order that a policy says. Clones are handles of the same pool.
///
/// ```
/// use headway_pool::{ClassOptions, Pool};
///
/// let pool = Pool::builder()
///     .policy("darc-stable")
///     .workers(2)
///     .class("point", ClassOptions::new())
///     .class("report", ClassOptions::new().workers_at_most(1))
///     .build()?;
/// let report = pool.submit("report", || (1..=1_000_u64).sum::<u64>());
/// assert_eq!(pool.run("point", || 6 * 7)?, 42);
/// assert_eq!(report.wait()?, 500_500); // or report.await, in any executor
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Its end
/// When the last handle is dropped, what waits is abandoned ([`JoinError::Abandoned`]), and what runs sees [`cancelled`](crate::cancelled) and goes
/// on to its end on its thread: dropping waits for nobody. [`shutdown`](Self::shutdown) waits.
#[derive(Clone, Debug)]
pub struct Pool {
    owner: Arc<PoolOwner>,
}

/// Ends the pool when the last handle is gone.
struct PoolOwner {
    shared: Arc<SharedPool>,
    warnings: Vec<PoolWarning>,
    /// What those ask who stand at its doors.
    subject: AskedSubject,
    doors: OpenDoors,
}

impl std::fmt::Debug for PoolOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shared.name)
    }
}

impl Drop for PoolOwner {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.shared.end();
        }
    }
}

impl Pool {
    /// A pool to be built.
    #[must_use]
    pub fn builder() -> PoolBuilder {
        PoolBuilder::default()
    }

    /// Nobody stands at its doors before its threads run.
    pub(crate) fn new(
        shared: Arc<SharedPool>,
        warnings: Vec<PoolWarning>,
        subject: AskedSubject,
    ) -> Self {
        Self {
            owner: Arc::new(PoolOwner {
                shared,
                warnings,
                subject,
                doors: OpenDoors::default(),
            }),
        }
    }

    /// Answers at these doors until the last handle is dropped. No other handle exists yet.
    pub(crate) fn answer_at(mut self, doors: BoundDoors) -> Result<Self, DoorError> {
        if let Some(owner) = Arc::get_mut(&mut self.owner) {
            owner.doors = doors.answer(&owner.subject)?;
        }
        Ok(self)
    }

    fn shared(&self) -> &Arc<SharedPool> {
        &self.owner.shared
    }

    /// What the pool does otherwise than its policy says; empty where nothing.
    #[must_use]
    pub fn warnings(&self) -> &[PoolWarning] {
        &self.owner.warnings
    }

    /// The handle of a declared class: looked up once, it spares the look-up of each submission by name.
    ///
    /// # Errors
    /// [`SubmitError::UnknownClass`].
    pub fn class(&self, name: &str) -> Result<PoolClass, SubmitError> {
        self.shared().classes.find(name)
    }

    /// Submits a closure. A job that is not accepted ends at once, with [`JoinError::Refused`].
    pub fn submit<F, T>(&self, class: impl NamesClass, closure: F) -> JobFuture<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_submit(class, closure)
            .unwrap_or_else(JobFuture::refused)
    }

    /// Submits a closure, and says at once if it is not accepted.
    ///
    /// # Errors
    /// [`SubmitError`]: the class is overloaded or unknown, or the pool is shut down.
    pub fn try_submit<F, T>(
        &self,
        class: impl NamesClass,
        closure: F,
    ) -> Result<JobFuture<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_or_else(class, closure, |_| ())
    }

    /// As [`try_submit`](Self::try_submit), and calls `otherwise` if the job ends without having begun: it was shed, cancelled or abandoned. So exactly one of
    /// the two is called for each accepted job, also where nobody awaits the result.
    ///
    /// `otherwise` is called by whoever ends the job: a submitter that displaces it, the thread that drops its future or ends the pool, a worker. It is brief.
    ///
    /// # Errors
    /// As [`try_submit`](Self::try_submit); then neither is called.
    pub fn submit_or_else<F, T>(
        &self,
        class: impl NamesClass,
        closure: F,
        otherwise: impl FnOnce(&JoinError) + Send + 'static,
    ) -> Result<JobFuture<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let class = class.find_in(&self.shared().classes)?.id;
        self.put(class, ClosureJob::new(closure, otherwise, false))
    }

    /// As [`submit`](Self::submit), for a closure that may be stopped: once its future is dropped, it unwinds at its next
    /// [`checkpoint`](crate::checkpoint()), as by a panic without a message.
    pub fn submit_cancellable<F, T>(&self, class: impl NamesClass, closure: F) -> JobFuture<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let class = class.find_in(&self.shared().classes);
        class
            .and_then(|class| self.put(class.id, ClosureJob::new(closure, |_| (), true)))
            .unwrap_or_else(JobFuture::refused)
    }

    /// Submits a closure whose class is learnt from `key`: an endpoint, a statement's digest. Keys with similar service times share a class.
    pub fn submit_unclassified<F, T>(&self, key: impl Hash, closure: F) -> JobFuture<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_unclassified_or_else(key, closure, |_| ())
            .unwrap_or_else(JobFuture::refused)
    }

    /// As [`submit_unclassified`](Self::submit_unclassified), with an end for each accepted job as by [`submit_or_else`](Self::submit_or_else).
    ///
    /// # Errors
    /// As [`try_submit`](Self::try_submit), and [`SubmitError::NothingLearns`]; then neither closure is called.
    pub fn submit_unclassified_or_else<F, T>(
        &self,
        key: impl Hash,
        closure: F,
        otherwise: impl FnOnce(&JoinError) + Send + 'static,
    ) -> Result<JobFuture<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = Arc::clone(self.shared());
        let Some(learner) = &self.shared().learner else {
            return Err(SubmitError::NothingLearns);
        };
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let key = hasher.finish();
        let class = learner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .class_of(key);
        let timed = move || {
            let from_ns = shared.clock.now_ns();
            let attained_ns = current::attained_ns(from_ns);
            let value = closure();
            let now_ns = shared.clock.now_ns();
            // Without the time in which it was interrupted; a job that left its worker has waited itself.
            let service_ns = match (attained_ns, current::attained_ns(now_ns)) {
                (Some(before_ns), Some(after_ns)) => after_ns.saturating_sub(before_ns),
                _ => now_ns.saturating_sub(from_ns),
            };
            if let Some(learner) = &shared.learner {
                learner
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .ran(key, service_ns);
            }
            value
        };
        self.put(class, ClosureJob::new(timed, otherwise, false))
    }

    /// Spawns a future. Each of its polls is a job for the policy; once woken it waits in its class's queue again.
    pub fn spawn<F>(&self, class: impl NamesClass, future: F) -> JobFuture<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let job = SpawnedJob::new(Arc::clone(self.shared()), future);
        let class = class.find_in(&self.shared().classes);
        class
            .and_then(|class| self.put(class.id, job))
            .unwrap_or_else(JobFuture::refused)
    }

    fn put<T: Send + 'static>(
        &self,
        class: ClassId,
        job: Arc<impl crate::job::Joined<T> + 'static>,
    ) -> Result<JobFuture<T>, SubmitError> {
        let runnable = Arc::clone(&job) as Arc<dyn crate::job::Runnable>;
        self.shared().submit(class, runnable)?;
        Ok(JobFuture::accepted(Arc::clone(self.shared()), class, job))
    }

    /// Submits a closure and blocks the calling thread until it has ended. For threads outside of the pool.
    ///
    /// # Errors
    /// [`JoinError`]; with [`SubmitError::InsidePool`] where a job of the same pool calls it.
    pub fn run<F, T>(&self, class: impl NamesClass, closure: F) -> Result<T, JoinError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if current::is_inside(self.shared().number()) {
            return Err(SubmitError::InsidePool.into());
        }
        self.submit(class, closure).wait()
    }

    /// What became of the jobs so far: counts read at one moment, and how they ran.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.shared().stats()
    }

    /// Its counts for a program's own [`Registry`](prometheus_client::registry::Registry), labelled by pool and class. They are read when they are
    /// asked for; a pool that is gone has none.
    ///
    /// ```
    /// use headway_pool::Pool;
    /// use prometheus_client::registry::Registry;
    ///
    /// let pool = Pool::builder().workers(1).build()?;
    /// let mut registry = Registry::default();
    /// registry.register_collector(Box::new(pool.collector()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn collector(&self) -> impl Collector + Clone + use<> {
        self.owner.subject.clone()
    }

    /// The same as text, in the format of OpenMetrics: for a program that answers Prometheus itself, without a registry.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        metrics::text(self.collector())
    }

    /// The path of its control socket, if the [builder](crate::PoolBuilder::control) chose one.
    #[must_use]
    pub fn control_path(&self) -> Option<&Path> {
        self.owner.doors.control()
    }

    /// The address where Prometheus and browsers find it, if the [builder](crate::PoolBuilder::metrics) chose one.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.owner.doors.metrics()
    }

    /// Waits until every accepted job has ended, futures that sleep included. Jobs that are submitted meanwhile are waited for too.
    ///
    /// # Errors
    /// [`SubmitError::InsidePool`]: a job of the pool would wait for itself. [`SubmitError::Forked`]: the jobs are the parent's.
    pub fn wait_idle(&self) -> Result<(), SubmitError> {
        if self.shared().is_forked() {
            return Err(SubmitError::Forked);
        }
        if current::is_inside(self.shared().number()) {
            return Err(SubmitError::InsidePool);
        }
        self.shared().wait_idle(None);
        Ok(())
    }

    /// Ends the pool: accepts no job any more but those that its own jobs submit, and waits for all to end, `most` at most. Then what waits is
    /// abandoned, and what runs sees [`cancelled`](crate::cancelled) and goes on to its end on its thread. A job of the pool does not wait: it would for itself.
    ///
    /// # Errors
    /// [`ShutdownTimeout`]: how many jobs were abandoned, and how many run still.
    pub fn shutdown(&self, most: Duration) -> Result<(), ShutdownTimeout> {
        if self.shared().is_forked() {
            return Ok(());
        }
        self.shared().shutdown(most)
    }
}
