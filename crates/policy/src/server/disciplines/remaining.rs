//! Shortest first: SJF where nothing is interrupted, SRPT under a monitor that does.

use super::heap::{ByKey, Key};
use super::{SizeSource, Sizes};
use crate::ClassId;
use crate::server::{Job, Shape};

/// Ordered by the service a request still wants. Without preemption that is its size: shortest job
/// first; with it, shortest remaining processing time (Schrage, Operations Research 16, 1968).
pub type Shortest = ByKey<Remaining>;

/// The service that a request still wants.
#[derive(Clone, Debug)]
pub struct Remaining {
    sizes: Sizes,
}

impl Shortest {
    /// One queue, with the shape's limit for each class.
    #[must_use]
    pub fn by_size(source: SizeSource, shape: &Shape) -> Self {
        let sizes = Sizes::new(source, shape);
        Self::new(
            Remaining { sizes },
            shape.queues(),
            shape.queue_limit,
            shape.job_capacity,
        )
    }
}

impl Key for Remaining {
    /// Notes the size in the job, so that a monitor sees what the queue goes by. What outlived its
    /// class's mean wants nothing more, as far as one can know, and is served first.
    #[inline]
    fn of(&self, job: &mut Job) -> u64 {
        job.size_ns = self.sizes.of(job);
        job.remaining_ns()
    }

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        self.sizes.completed(class, cpu_ns);
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
