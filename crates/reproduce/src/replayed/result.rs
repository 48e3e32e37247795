//! The results of replayed arrivals: their workload, and the figures of each system at each load.

use serde::Serialize;

use super::figure::RunFigure;
use super::run::ReplayedRun;
use crate::measured::SystemAtPlace;
use crate::measured::claim::counted;
use crate::measured::rounds::median;

/// The replayed workload.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedDetails {
    /// The workload.
    pub workload: String,
    /// Number of workers of each system.
    pub workers: usize,
    /// Time that requests arrived in a run, ms.
    pub run_ms: u64,
}

/// A system at a load: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedPoint {
    /// The system's name.
    pub system: String,
    /// Offered load of the workers.
    pub load: f64,
    /// Number of rounds that count.
    pub rounds: usize,
    /// The fraction of the requests that the machine left undisturbed.
    pub untouched_fraction: f64,
    /// The figures, in the order of [`RunFigure::SHOWN`]: live and simulated.
    pub figures: Vec<(RunFigure, f64, f64)>,
}

impl ReplayedPoint {
    pub(super) fn new(system: &str, load: f64, runs: &[ReplayedRun]) -> Self {
        let counted: Vec<&ReplayedRun> = counted(runs, SystemAtPlace::anywhere(system))
            .filter(|run| run.load == load)
            .collect();
        let figures = RunFigure::SHOWN.map(|figure: RunFigure| {
            let live = median(counted.iter().map(|run| figure.live(run)));
            let simulated = median(counted.iter().map(|run| figure.simulated(run)));
            (figure, live, simulated)
        });
        Self {
            system: system.into(),
            load,
            rounds: counted.len(),
            untouched_fraction: median(counted.iter().map(|run| run.untouched_fraction)),
            figures: figures.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::ReplayedClaim;
    use super::super::run::ReplayedFigures;
    use super::*;
    use crate::measured::claim::judge;
    use crate::measured::{Expectation, MeasuredVerdict};
    use headway_report::{ClassMeta, Overall, Recorder};

    fn run(system: &str, round: usize, slowdown: u64, counts: bool) -> ReplayedRun {
        let mut recorder = Recorder::new(&[ClassMeta::new("short", 1_000.0)]);
        for _ in 0..100 {
            recorder.record(0, 1_000 * slowdown, 1_000);
        }
        let side = ReplayedFigures {
            overall: Overall::of(&recorder.overall()),
            preemptions_each: 0.5,
        };
        ReplayedRun {
            round,
            load: 0.7,
            system: system.into(),
            counts,
            untouched_fraction: 0.9,
            lost_fraction: 0.01,
            preemptions: 5,
            renewals: 95,
            all: side.overall,
            live: side.clone(),
            simulated: side,
        }
    }

    #[test]
    fn a_single_figure_is_of_the_rounds_that_count() {
        let runs: Vec<_> = (0..3)
            .map(|round| run("mine", round, 2, round > 0))
            .collect();
        let avoided = ReplayedClaim {
            says: "so it is".into(),
            of: "mine".into(),
            over: None,
            figure: RunFigure::Avoided,
            load: 0.7,
            expect: Expectation::AtLeast(0.9),
            reason: None,
        };
        let judged = judge(&avoided, &runs);
        assert_eq!(
            (judged.rounds, judged.verdict),
            (2, MeasuredVerdict::Reproduced)
        );
        assert!((judged.live.unwrap().estimate - 0.95).abs() < 1e-9);
        // The simulator has no count of avoided interruptions.
        assert!(judged.simulated.is_none());
        let here = ReplayedPoint::new("mine", 0.7, &runs);
        assert_eq!(
            (here.rounds, here.figures.len()),
            (2, RunFigure::SHOWN.len())
        );
    }
}
