//! The jobs of one class that wait, first come first served.
//!
//! A policy decides over tokens, a number and a class each. Which job a token stands for is decided as it begins: the oldest of its class that
//! still waits. So a job may leave from the middle of the queue at any time, whatever the policy's own queues are.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::job::Runnable;

/// A job that waits.
pub(crate) struct QueuedJob {
    /// The order of submission, over all classes.
    pub(crate) sequence: u64,
    pub(crate) submitted_ns: u64,
    pub(crate) job: Arc<dyn Runnable>,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct ClassQueue {
    /// Ascending by sequence; `None` where a job left.
    places: VecDeque<(u64, Option<QueuedJob>)>,
    waiting: usize,
}

/// As many places without a job are kept at least, before they are cleared.
const SPARSE: usize = 64;

impl ClassQueue {
    #[inline]
    pub(crate) fn push(&mut self, job: QueuedJob) {
        self.places.push_back((job.sequence, Some(job)));
        self.waiting += 1;
    }

    /// The oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueuedJob> {
        while let Some((_, place)) = self.places.pop_front() {
            if place.is_some() {
                self.waiting -= 1;
                return place;
            }
        }
        None
    }

    /// The youngest.
    pub(crate) fn pop_youngest(&mut self) -> Option<QueuedJob> {
        while let Some((_, place)) = self.places.pop_back() {
            if place.is_some() {
                self.waiting -= 1;
                return place;
            }
        }
        None
    }

    /// The oldest, if it was submitted before that time and has not begun: a future that was woken waits here again.
    pub(crate) fn pop_before(&mut self, submitted_ns: u64) -> Option<QueuedJob> {
        while let Some((_, None)) = self.places.front() {
            self.places.pop_front();
        }
        let (_, front) = self.places.front()?;
        let is_before = front
            .as_ref()
            .is_some_and(|job| job.submitted_ns < submitted_ns && !job.job.flags().has_begun());
        if is_before { self.pop() } else { None }
    }

    /// Takes out this job, if it still waits.
    pub(crate) fn remove(&mut self, sequence: u64) -> Option<QueuedJob> {
        let at = self
            .places
            .binary_search_by_key(&sequence, |(at, _)| *at)
            .ok()?;
        let job = self.places[at].1.take()?;
        self.waiting -= 1;
        // Each job that leaves pays for a part of this.
        if self.places.len() > SPARSE + 2 * self.waiting {
            self.places.retain(|(_, place)| place.is_some());
        }
        Some(job)
    }
}
