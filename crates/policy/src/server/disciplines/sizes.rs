//! How long a request will take: told, or guessed by its class.

use crate::ClassId;
use crate::server::{Job, Shape};
use alloc::vec::Vec;

/// Where sizes come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SizeSource {
    /// The request says it ([`Job::size_ns`]); one that does not is taken for its class's mean.
    #[default]
    Known,
    /// Every request is taken for its class's mean.
    Profile,
}

/// A class's mean service time: the declared one until something completed, then the mean of what
/// did; beyond [`MEMORY`](Self::MEMORY) completions the older ones fade.
#[derive(Clone, Copy, Debug)]
struct Mean {
    ns: f64,
    completions: u32,
}

impl Mean {
    /// Completions that count in full.
    const MEMORY: u32 = 4096;

    #[inline]
    fn add(&mut self, cpu_ns: u64) {
        let off_ns = cpu_ns as f64 - self.ns;
        if self.completions < Self::MEMORY {
            self.completions += 1;
            self.ns += off_ns / f64::from(self.completions);
        } else {
            // A power of two: to divide by it and to multiply by its reciprocal is the same, and one is slow.
            self.ns += off_ns * (1.0 / Self::MEMORY as f64);
        }
    }
}

/// The sizes of requests as far as one can know them.
#[derive(Clone, Debug)]
pub struct Sizes {
    source: SizeSource,
    /// By class, UNKNOWN last.
    means: Vec<Mean>,
}

impl Sizes {
    /// UNKNOWN is longer than everything else until one of it has completed.
    #[must_use]
    pub fn new(source: SizeSource, shape: &Shape) -> Self {
        let declared = shape.classes.iter().map(|hint| hint.mean_ns);
        Self {
            source,
            means: declared
                .chain([1e18])
                .map(|ns| Mean { ns, completions: 0 })
                .collect(),
        }
    }

    /// How long the request takes in all, ns.
    #[inline]
    #[must_use]
    pub fn of(&self, job: &Job) -> u64 {
        match (self.source, job.size_ns) {
            (SizeSource::Known, size_ns @ 1..) => size_ns,
            _ => self.means[job.class.index()].ns as u64,
        }
    }

    /// A request of the class took so long.
    #[inline]
    pub fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        self.means[class.index()].add(cpu_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::JobId;

    fn of(sizes: &Sizes, class: u16, size_ns: u64) -> u64 {
        sizes.of(&Job {
            size_ns,
            ..Job::new(JobId(0), ClassId(class), 0)
        })
    }

    #[test]
    fn a_class_is_its_mean_the_declared_one_at_first() {
        let shape = Shape::new(1).class(1_000, 0.5).class(9_000, 0.5);
        let mut sizes = Sizes::new(SizeSource::Profile, &shape);
        assert_eq!(of(&sizes, 0, 5), 1_000);
        for cpu_ns in [2_000, 3_000, 4_000] {
            sizes.completed(ClassId(0), cpu_ns);
        }
        assert_eq!(of(&sizes, 0, 5), 3_000);
        assert_eq!(of(&sizes, 1, 5), 9_000);
        assert!(of(&sizes, 2, 5) > 1 << 50, "UNKNOWN comes last");
    }

    #[test]
    fn a_profile_follows_what_changes() {
        let shape = Shape::new(1).class(1_000, 1.0);
        let mut sizes = Sizes::new(SizeSource::Profile, &shape);
        for cpu_ns in [(1_000, 100_000), (50_000, 30_000)]
            .into_iter()
            .flat_map(|(ns, count)| core::iter::repeat_n(ns, count))
        {
            sizes.completed(ClassId(0), cpu_ns);
        }
        assert!((49_900..=50_000).contains(&of(&sizes, 0, 0)));
    }

    #[test]
    fn a_request_that_says_its_size_is_believed() {
        let shape = Shape::new(1).class(1_000, 1.0);
        let sizes = Sizes::new(SizeSource::Known, &shape);
        assert_eq!(of(&sizes, 0, 7), 7);
        assert_eq!(of(&sizes, 0, 0), 1_000);
    }
}
