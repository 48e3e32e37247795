//! Classes of jobs: what a program says of them, and how it names them.

use std::time::Duration;

use headway_policy::{ClassHint, ClassId};

use crate::error::SubmitError;

/// What a program says of a class. Nothing needs to be said: service times are learnt.
///
/// ```
/// use headway_pool::ClassOptions;
/// use std::time::Duration;
///
/// let report = ClassOptions::new().mean(Duration::from_millis(20)).workers_at_most(1);
/// # let _ = report;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClassOptions {
    pub(crate) mean: Option<Duration>,
    pub(crate) share: f64,
    pub(crate) slo: Option<Duration>,
    pub(crate) workers_at_most: Option<usize>,
    pub(crate) queue_limit: Option<usize>,
    pub(crate) begin_within: Option<Duration>,
    pub(crate) uninterrupted: bool,
}

impl ClassOptions {
    /// Nothing said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The mean service time as far as known: policies that order classes by it start with this one, and learn.
    #[must_use]
    pub fn mean(mut self, mean: Duration) -> Self {
        self.mean = Some(mean);
        self
    }

    /// Its share of all jobs, 0 to 1, as far as known. Others are refused by [`PoolBuilder::build`](crate::PoolBuilder::build).
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// How long a job may take from submission to its end. A job that would miss it by waiting is refused
    /// ([`SubmitError::Overloaded`]).
    #[must_use]
    pub fn slo(mut self, slo: Duration) -> Self {
        self.slo = Some(slo);
        self
    }

    /// Jobs of the class run on at most so many workers at a time.
    #[must_use]
    pub fn workers_at_most(mut self, workers: usize) -> Self {
        self.workers_at_most = Some(workers);
        self
    }

    /// At most so many jobs of the class wait to begin (a future that has begun is not refused, whatever it waits for); else the pool's [capacity](crate::PoolBuilder::capacity) alone bounds them.
    #[must_use]
    pub fn queue_limit(mut self, jobs: usize) -> Self {
        self.queue_limit = Some(jobs);
        self
    }

    /// A job that did not begin within this time of its submission is shed ([`ShedReason::TooLate`](crate::ShedReason::TooLate)) instead of begun.
    #[must_use]
    pub fn begin_within(mut self, time: Duration) -> Self {
        self.begin_within = Some(time);
        self
    }

    /// Its jobs are never interrupted, where others are.
    #[must_use]
    pub fn uninterrupted(mut self) -> Self {
        self.uninterrupted = true;
        self
    }

    pub(crate) fn hint(&self) -> ClassHint {
        let mut hint = ClassHint::new(
            self.mean.map_or(0.0, |mean| mean.as_nanos() as f64),
            self.share,
        );
        hint.slo_ns = self.slo.map(nanoseconds);
        hint
    }
}

/// As ns; centuries at most.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A class of one pool, found once by [`Pool::class`](crate::Pool::class).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolClass {
    pub(crate) pool: u64,
    pub(crate) id: ClassId,
}

/// The classes of one pool by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassNames {
    pub(crate) pool: u64,
    pub(crate) names: Vec<String>,
}

impl ClassNames {
    pub(crate) fn find(&self, name: &str) -> Result<PoolClass, SubmitError> {
        match self.names.iter().position(|class| class == name) {
            Some(at) => Ok(PoolClass {
                pool: self.pool,
                id: ClassId(at as u16),
            }),
            None => Err(SubmitError::UnknownClass {
                name: name.to_owned(),
                known: self.names.clone(),
            }),
        }
    }
}

/// A class, by its handle or by its name.
pub trait NamesClass {
    /// The class among those of a pool.
    ///
    /// # Errors
    /// [`SubmitError::UnknownClass`] or [`SubmitError::OtherPool`].
    fn find_in(&self, classes: &ClassNames) -> Result<PoolClass, SubmitError>;
}

impl NamesClass for PoolClass {
    #[inline]
    fn find_in(&self, classes: &ClassNames) -> Result<PoolClass, SubmitError> {
        if self.pool == classes.pool {
            Ok(*self)
        } else {
            Err(SubmitError::OtherPool)
        }
    }
}

impl NamesClass for str {
    fn find_in(&self, classes: &ClassNames) -> Result<PoolClass, SubmitError> {
        classes.find(self)
    }
}

impl NamesClass for String {
    fn find_in(&self, classes: &ClassNames) -> Result<PoolClass, SubmitError> {
        classes.find(self)
    }
}

impl<N: NamesClass + ?Sized> NamesClass for &N {
    #[inline]
    fn find_in(&self, classes: &ClassNames) -> Result<PoolClass, SubmitError> {
        (*self).find_in(classes)
    }
}
