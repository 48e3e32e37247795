//! What a system is built for: how many workers, which classes, how much room.

use crate::{BitSet, ClassHint, ClassId};
use alloc::vec::Vec;

/// Most workers one server may have.
pub const MAX_WORKERS: usize = BitSet::CAPACITY;
/// Most declared classes; UNKNOWN takes the remaining place of a [`BitSet`].
pub const MAX_CLASSES: usize = BitSet::CAPACITY - 1;

/// A class is long from so many times the shortest class's mean service time on.
pub(crate) const TIMES_THE_SHORTEST: f64 = 10.0;

/// Where an interrupted request may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Resume {
    /// On any worker, as in the papers.
    #[default]
    Anywhere,
    /// Where it was interrupted: for handlers that keep thread-local state.
    OwnWorker,
}

/// What a system is built for.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// Workers at the start, `1..=MAX_WORKERS`.
    pub workers: usize,
    /// The declared classes, `0..=MAX_CLASSES` of them.
    pub classes: Vec<ClassHint>,
    /// Job ids are below this.
    pub job_capacity: usize,
    /// Most requests that wait in one queue (per class where queues are typed); what comes on
    /// top is shed.
    pub queue_limit: usize,
    /// Offered load as a fraction of all workers, where it is known beforehand (simulation).
    pub known_load: Option<f64>,
    /// Seed of the policies' own randomness.
    pub seed: u64,
    /// Where interrupted requests may go on.
    pub resume: Resume,
}

impl Shape {
    /// `workers` workers, no class yet, queues bounded by the job capacity of 65 536 alone.
    ///
    /// # Panics
    /// When `workers` is 0 or exceeds [`MAX_WORKERS`].
    #[must_use]
    pub fn new(workers: usize) -> Self {
        assert!(
            (1..=MAX_WORKERS).contains(&workers),
            "1 to {MAX_WORKERS} workers, not {workers}"
        );
        let job_capacity = 1 << 16;
        Self {
            workers,
            classes: Vec::new(),
            job_capacity,
            queue_limit: usize::MAX,
            known_load: None,
            seed: 0,
            resume: Resume::Anywhere,
        }
    }

    /// Declares one more class: its mean service time in ns and its share of the requests.
    ///
    /// # Panics
    /// Beyond [`MAX_CLASSES`] classes.
    #[must_use]
    pub fn class(mut self, mean_ns: u64, share: f64) -> Self {
        assert!(
            self.classes.len() < MAX_CLASSES,
            "at most {MAX_CLASSES} classes"
        );
        self.classes.push(ClassHint::new(mean_ns as f64, share));
        self
    }

    /// The long classes: those that say so, and of the others those whose mean is at least ten times that of the shortest class with a mean. A class of which
    /// nothing is known is none of them, nor is UNKNOWN.
    #[must_use]
    pub fn longs(&self) -> BitSet {
        let means = self.classes.iter().map(|hint| hint.mean_ns);
        let shortest_ns = means
            .filter(|mean_ns| *mean_ns > 0.0)
            .fold(f64::INFINITY, f64::min);
        (0..self.classes.len())
            .filter(|&class| {
                let ClassHint { mean_ns, long, .. } = self.classes[class];
                long.unwrap_or(mean_ns >= TIMES_THE_SHORTEST * shortest_ns)
            })
            .collect()
    }

    /// The classes that are short by their hints. A class of which nothing is known is none of them, nor is UNKNOWN.
    #[must_use]
    pub fn hinted_shorts(&self) -> BitSet {
        let longs = self.longs();
        (0..self.classes.len())
            .filter(|&class| self.classes[class].tells_length() && !longs.contains(class))
            .collect()
    }

    /// Which of so many wait queues each class has, UNKNOWN included: the shortest long class the first, the next one the
    /// second, and the last queue is that of all longer ones. What is not long has the first.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn wait_queues(&self, most: usize) -> Vec<usize> {
        assert!(most > 0, "something must hold what is interrupted");
        let longs = self.longs();
        let mut queues = alloc::vec![0; self.queues()];
        let ascending = self.ascending();
        let ascending = ascending
            .into_iter()
            .filter(|class| longs.contains(class.index()));
        for (rank, class) in ascending.enumerate() {
            queues[class.index()] = rank.min(most - 1);
        }
        queues
    }

    /// The SLO of each declared class, ns: as declared, else so many of its mean service times.
    pub fn slos_ns(&self, means: f64) -> impl Iterator<Item = u64> + '_ {
        self.classes
            .iter()
            .map(move |hint: &ClassHint| hint.slo_ns.unwrap_or((means * hint.mean_ns) as u64))
    }

    /// The class of what the classifier did not recognise.
    #[must_use]
    pub fn unknown(&self) -> ClassId {
        ClassId(self.classes.len() as u16)
    }

    /// Declared classes and UNKNOWN.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.classes.len() + 1
    }

    /// Classes by ascending mean service time, ties in the order of declaration, UNKNOWN last.
    #[must_use]
    pub fn ascending(&self) -> Vec<ClassId> {
        let mut order: Vec<ClassId> = (0..self.queues() as u16).map(ClassId).collect();
        let mean = |class: &ClassId| {
            self.classes
                .get(class.index())
                .map_or(f64::INFINITY, |hint| hint.mean_ns)
        };
        order.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_long_by_what_is_known_of_it_alone() {
        let longs = |means: &[u64]| -> Vec<usize> {
            let shape = means
                .iter()
                .fold(Shape::new(1), |shape, mean_ns| shape.class(*mean_ns, 0.5));
            shape.longs().iter().collect()
        };
        assert_eq!(longs(&[1_000, 10_000, 9_999]), [1]);
        // Means of 0 are unknown: they make nothing long, and are not themselves.
        assert_eq!(longs(&[0, 0]), []);
        assert_eq!(longs(&[0, 1_000, 10_000]), [2]);
    }
}
