//! The result of a run, and the rule for runs that count.
//!
//! If more than 1 % of a run's requests leave more than 1 ms late, client and server lacked processor time. Such a run is repeated once, up
//! to a quarter of all runs. If the repetition is late too, that load is left out of the round for all systems, so that each round compares
//! the same loads. A round that lacks more than one load is left out.

use std::collections::BTreeSet;

use headway_report::{ClassResult, Overall, Run};
use serde::Serialize;

use super::carried::{CarriedRate, RoundStep};
use super::tail::Tail;
use crate::measured::Lag;

/// The fraction of all runs that may be repeated.
const AGAIN_MAX: f64 = 0.25;
/// Number of loads that a round may lack.
const LACKING_MAX: usize = 1;

/// Number of repetitions that a plan of `runs` runs may have.
pub(crate) fn again(runs: usize) -> usize {
    (AGAIN_MAX * runs as f64) as usize
}

/// One system at one load in one round.
#[derive(Clone, Debug, Serialize)]
pub struct LiveRun {
    /// Number of the round, from 0.
    pub round: usize,
    /// Offered rate, as a fraction of the reference's capacity.
    pub load: f64,
    /// The system's name.
    pub system: String,
    /// Requests that the server turned away.
    pub shed: u64,
    /// Requests answered with an error.
    pub failed: u64,
    /// Sending delays.
    pub lag: Lag,
    /// Whether this run was late and has a repetition.
    pub repeated: bool,
    /// Number of yields at the end of a lock that had prevented an earlier one; 0 if the server does not report it.
    pub lock_yields: u64,
    /// Figures at the server: from the send, less the network's time at rest.
    pub server: AtServer,
    /// Figures at the client: from the intended time.
    #[serde(flatten)]
    pub run: Run,
}

/// Latencies and slowdowns at the server.
#[derive(Clone, Debug, Serialize)]
pub struct AtServer {
    /// All requests.
    pub overall: Overall,
    /// Each class, in the file's order.
    pub classes: Vec<ClassResult>,
}

impl LiveRun {
    fn step(&self, tail: Tail) -> RoundStep {
        let failed = self.failed as f64 / self.run.meta.requests.max(1) as f64;
        RoundStep {
            rps: self.run.meta.offered_rps,
            slowdown: tail.of(&self.server.overall.slowdown),
            sustained: self.run.sustained() && failed <= headway_report::LOST_FRACTION_MAX,
        }
    }
}

/// Whether the client sent a run's requests in time.
pub(crate) struct Punctuality {
    pub(crate) round: usize,
    /// Index of the load.
    pub(crate) load: usize,
    pub(crate) is_late: bool,
}

/// The loads and rounds that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Single loads, as number of the round and index of the load.
    pub loads: BTreeSet<(usize, usize)>,
    /// Whole rounds.
    pub rounds: BTreeSet<usize>,
}

impl LeftOut {
    /// Decides from the last run of each system at each load of each round.
    pub(crate) fn of(runs: impl Iterator<Item = Punctuality>) -> Self {
        let late = runs.filter(|run| run.is_late);
        let loads: BTreeSet<_> = late.map(|run| (run.round, run.load)).collect();
        let rounds = loads.iter().map(|(round, _)| *round);
        let rounds = rounds
            .filter(|round| loads.iter().filter(|(of, _)| of == round).count() > LACKING_MAX)
            .collect();
        Self { loads, rounds }
    }

    pub(crate) fn counts(&self, round: usize, load: usize) -> bool {
        !self.rounds.contains(&round) && !self.loads.contains(&(round, load))
    }
}

/// The rate that a system carried in a round, from its runs that count.
pub(crate) fn carried(runs: &[&LiveRun], tail: Tail, slowdown: f64) -> Option<CarriedRate> {
    let mut steps: Vec<RoundStep> = runs.iter().map(|run| run.step(tail)).collect();
    steps.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    CarriedRate::of(&steps, slowdown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_load_is_left_out_of_its_round_and_a_round_that_lacks_two() {
        let late = [(0, 1), (1, 0), (1, 2)];
        let runs = (0..3).flat_map(|round| (0..3).map(move |load| (round, load)));
        let out = LeftOut::of(runs.map(|(round, load)| Punctuality {
            round,
            load,
            is_late: late.contains(&(round, load)),
        }));
        assert!(out.counts(0, 0) && !out.counts(0, 1) && out.counts(2, 2));
        assert!((0..3).all(|load| !out.counts(1, load)));
        assert_eq!(out.rounds.len(), 1);
        assert_eq!(LeftOut::of(std::iter::empty()), LeftOut::default());
    }

    #[test]
    fn a_quarter_of_the_runs_may_be_repeated() {
        assert_eq!(again(75), 18);
    }
}
