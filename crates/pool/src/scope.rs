//! Jobs that borrow from the code that submits them.
#![expect(unsafe_code, reason = "a borrowed closure is run by another thread")]

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::class::NamesClass;
use crate::error::{JoinError, SubmitError};
use crate::future::JobFuture;
use crate::job::drop_quietly;
use crate::pool::Pool;

/// Where [`Pool::scope`] submits jobs that may borrow what lives as long as `'env`.
#[derive(Debug)]
pub struct JobScope<'scope, 'env: 'scope> {
    pool: &'env Pool,
    jobs: Mutex<Vec<JobFuture<()>>>,
    /// Invariant in both, as [`std::thread::Scope`] is.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// While jobs may still borrow, nothing may unwind.
struct EndsProcess;

impl Drop for EndsProcess {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Pool {
    /// Runs `body`, and returns once every job has ended that it submitted to the scope. The jobs may borrow.
    ///
    /// A worker of the same pool that calls it runs the scope's jobs itself as far as they still wait.
    ///
    /// # Errors
    /// The first job's [`JoinError`] that has no result: it panicked, was shed or abandoned. All jobs have ended then too.
    ///
    /// # Panics
    /// When `body` panics, once every job has ended.
    ///
    /// ```
    /// use headway_pool::{ClassOptions, Pool};
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    ///
    /// let pool = Pool::builder().workers(2).class("sum", ClassOptions::new()).build()?;
    /// let (numbers, sum) = (vec![1, 2, 3], AtomicU32::new(0));
    /// pool.scope(|scope| {
    ///     for number in &numbers {
    ///         scope.submit("sum", || sum.fetch_add(*number, Relaxed)).expect("there is room for three");
    ///     }
    /// })?;
    /// assert_eq!(sum.into_inner(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope JobScope<'scope, 'env>) -> R,
    ) -> Result<R, JoinError> {
        let scope = JobScope {
            pool: self,
            jobs: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let returned = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        let borrowed = EndsProcess;
        let mut failure = None;
        // A job may submit to the scope too, so look again until none is left.
        while let Some(job) = scope.pop() {
            match (job.wait(), &failure) {
                (Err(error), None) => failure = Some(error),
                // What a job panicked with may panic in its own destructor.
                (unneeded, _) => drop_quietly(unneeded),
            }
        }
        std::mem::forget(borrowed);
        match (returned, failure) {
            (Err(payload), failure) => {
                drop_quietly(failure);
                resume_unwind(payload)
            }
            (Ok(_), Some(error)) => Err(error),
            (Ok(value), None) => Ok(value),
        }
    }
}

impl<'scope, 'env> JobScope<'scope, 'env> {
    /// Submits a job that may borrow. What it returns is dropped.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn submit<F, T>(&'scope self, class: impl NamesClass, closure: F) -> Result<(), SubmitError>
    where
        F: FnOnce() -> T + Send + 'scope,
    {
        let borrowed: Box<dyn FnOnce() + Send + 'scope> = Box::new(move || drop(closure()));
        // SAFETY: only the lifetime changes. Whoever ends a job first runs or drops its closure (see `Runnable`), and `Pool::scope` waits for the end
        // of each before `'scope` is over, also where its body panics, and ends the process where it cannot. A forked child has no thread that runs the closure.
        let closure: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(borrowed) };
        let job = self.pool.try_submit(class, closure)?;
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(job);
        Ok(())
    }

    fn pop(&self) -> Option<JobFuture<()>> {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }
}
