//! Whose fault a late run was: the job's, which met no probe, or the machine's, which took the core away.
//!
//! A thread's own time is a system call, so it is read for suspects alone: the first late run of a class puts the class under suspicion, and its
//! next run is measured.

use crate::turn_watch::ReadsOwnTime;

/// The classes of which a run was late on this thread, and whose next run is measured.
pub struct Suspects<T> {
    own_time: T,
    classes: Vec<u16>,
}

/// A run that was late, as its thread saw it.
#[derive(Clone, Copy, Debug)]
pub struct LateRun {
    /// How long after it was to make way it did, or ended, ns.
    pub late_ns: u64,
    /// How long the run took, ns.
    pub ran_ns: u64,
    /// For how much of the run its thread had a core, ns; `None` where that was not measured.
    pub own_ns: Option<u64>,
}

impl LateRun {
    /// For how long its thread ran on, ns: without the time that others took from it. `None` where that was not measured.
    #[must_use]
    pub fn overran_ns(&self) -> Option<u64> {
        let taken_ns = self.ran_ns.saturating_sub(self.own_ns?);
        Some(self.late_ns.saturating_sub(taken_ns))
    }
}

/// A class's late runs and those in time, as its workers counted them.
#[derive(Clone, Copy, Debug)]
pub struct LateRuns {
    /// Runs that were late, and not by the machine's fault alone.
    pub late: u64,
    /// Runs that ended, or made way, in time.
    pub in_time: u64,
}

impl LateRuns {
    /// Fewer late runs say nothing of a class: a stop of the machine may explain one.
    pub const ENOUGH: u64 = 8;

    /// Nor do they among more runs in time for each: a thread has a core while the machine handles interrupts or stops it unseen, so every class has some.
    const IN_TIME_MAX: u64 = 100;

    /// Whether the class's code is known to lack probes.
    #[must_use]
    pub fn lack_probes(self) -> bool {
        self.late >= Self::ENOUGH && self.in_time <= self.late.saturating_mul(Self::IN_TIME_MAX)
    }
}

impl<T: ReadsOwnTime> Suspects<T> {
    /// Of a thread with this account of its time, and so many classes.
    #[must_use]
    pub fn new(own_time: T, classes: usize) -> Self {
        Self {
            own_time,
            classes: Vec::with_capacity(classes),
        }
    }

    /// Whether no class is under suspicion.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Puts the class under suspicion.
    #[cold]
    pub fn suspect(&mut self, class: u16) {
        if !self.classes.contains(&class) && self.classes.len() < self.classes.capacity() {
            self.classes.push(class);
        }
    }

    /// The thread's own time, ns, before a run of this class, if that is under suspicion; it no longer is.
    #[cold]
    pub fn acquit(&mut self, class: u16) -> Option<u64> {
        let place = self.classes.iter().position(|suspect| *suspect == class)?;
        self.classes.swap_remove(place);
        self.own_time.own_ns()
    }

    /// The thread's own time since it was `before_ns`.
    #[cold]
    #[must_use]
    pub fn own_time_since(&self, before_ns: u64) -> Option<u64> {
        let now_ns = self.own_time.own_ns()?;
        Some(now_ns.saturating_sub(before_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl ReadsOwnTime for &Cell<u64> {
        fn own_ns(&self) -> Option<u64> {
            Some(self.get())
        }
    }

    #[test]
    fn a_suspect_is_measured_once() {
        let own_ns = Cell::new(100);
        let mut suspects = Suspects::new(&own_ns, 2);
        assert_eq!((suspects.is_empty(), suspects.acquit(1)), (true, None));
        suspects.suspect(1);
        suspects.suspect(1);
        assert_eq!(suspects.acquit(0), None);
        assert_eq!(suspects.acquit(1), Some(100));
        own_ns.set(170);
        assert_eq!(suspects.own_time_since(100), Some(70));
        assert_eq!((suspects.is_empty(), suspects.acquit(1)), (true, None));
    }

    #[test]
    fn one_late_run_in_a_hundred_is_a_habit_and_a_few_are_none() {
        let lack_probes = |late, in_time| LateRuns { late, in_time }.lack_probes();
        assert!(lack_probes(LateRuns::ENOUGH, 0));
        assert!(!lack_probes(LateRuns::ENOUGH - 1, 0));
        assert!(lack_probes(20, 2_000));
        assert!(!lack_probes(20, 2_001));
        assert!(lack_probes(u64::MAX, u64::MAX));
    }

    #[test]
    fn what_others_took_is_not_the_jobs_fault() {
        let late = LateRun {
            late_ns: 900,
            ran_ns: 1_000,
            own_ns: Some(300),
        };
        assert_eq!(late.overran_ns(), Some(200));
        let unmeasured = LateRun {
            own_ns: None,
            ..late
        };
        assert_eq!(unmeasured.overran_ns(), None);
    }
}
