//! How the classes share the jobs that may have begun and not ended.
//!
//! Each of those has a thread's state, so their number is limited, and a policy that interrupts begins whatever is new. In an overload one class would have them all,
//! and what begins beyond them runs to its end before anything shorter. So a class has at most twice of what is left: one that is overloaded alone takes two thirds of all, two take
//! two fifths each, and there is always room for what comes next (dynamic thresholds: A. K. Choudhury and E. L. Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
//! The others wait in the queue of their class, and the policy hears of them later.

/// Of what is left, a class has at most so many times as much.
const TIMES_THE_REST: usize = 2;

/// The jobs that may have begun, or wait where the policy knows of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunLimit(Option<usize>);

impl BegunLimit {
    /// Where jobs that have begun take nothing that is scarce.
    pub const NONE: Self = Self(None);

    /// So many may have begun, or twice the workers if that is more: each of them finds something to do.
    pub fn of(most: usize, workers: usize) -> Self {
        Self(Some(most.max(2 * workers)))
    }

    /// Whether a class with so many jobs, of so many in all, may have one more. The last is for a class that has none.
    #[inline]
    pub fn has_room(self, of_class: usize, all: usize) -> bool {
        let Some(most) = self.0 else { return true };
        match most.saturating_sub(all) {
            0 => false,
            rest => of_class == 0 || of_class < TIMES_THE_REST * (rest - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// How many each class gets where every one wants all: one that is picked, or the next that has room.
    fn filled(
        limit: BegunLimit,
        pick: &mut dyn FnMut(usize) -> usize,
        classes: usize,
    ) -> Vec<usize> {
        let mut jobs = vec![0; classes];
        loop {
            let (all, first) = (jobs.iter().sum(), pick(classes));
            let mut from = (first..classes).chain(0..first);
            let Some(class) = from.find(|class| limit.has_room(jobs[*class], all)) else {
                return jobs;
            };
            jobs[class] += 1;
        }
    }

    #[test]
    fn one_class_has_two_thirds_and_two_have_two_fifths() {
        let limit = BegunLimit::of(121, 2);
        assert_eq!(filled(limit, &mut |_| 0, 1), [80]);
        let mut turn = 0;
        let mut in_turns = |classes| {
            turn += 1;
            turn % classes
        };
        assert_eq!(filled(limit, &mut in_turns, 2), [48, 48]);
        assert!(BegunLimit::NONE.has_room(1_000_000, 1_000_000));
    }

    #[test]
    fn every_worker_finds_something_and_whoever_comes_has_room() {
        for seed in 0..5_000 {
            let mut rng = crate::Rng::new(seed);
            let (most, workers) = (rng.below(300), 1 + rng.below(64));
            let classes = 1 + rng.below(15);
            let limit = BegunLimit::of(most, workers);
            let jobs = filled(limit, &mut |classes| rng.below(classes), classes);
            let all: usize = jobs.iter().sum();
            let what = alloc::format!("seed {seed}: {most}, {workers}, {jobs:?}");
            assert!(all >= workers, "{what}");
            assert!(all <= most.max(2 * workers), "{what}");
            // Each class begins something, whoever was there before.
            assert!(most < 4 * classes || !jobs.contains(&0), "{what}");
        }
    }
}
