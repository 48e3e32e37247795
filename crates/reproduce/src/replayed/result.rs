//! The measured figures beside the paper's claims.

use headway_machine::MachineDescription;
use serde::Serialize;

use super::claim::ReplayedFigure;
use super::experiment::ReplayedExperiment;
use super::figure::RunFigure;
use super::measure::ReplayedSettings;
use super::run::ReplayedRun;
use crate::measured::MeasuredExperiment as _;
use crate::measured::claim::{MeasuredJudged, SystemAtPlace, counted, judge};
use crate::measured::rounds::median;
use crate::text::on_one_line;

/// A figure measured on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedReproduction {
    /// The experiment's name.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The paper.
    pub paper: String,
    /// Number of the figure or table in the paper.
    pub figure: String,
    /// The differences between the paper's testbed and this machine.
    pub testbed: String,
    /// Whether this is the short version.
    pub shortened: bool,
    /// This machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// Number of workers of each system.
    pub workers: usize,
    /// Number of rounds of each system at each load.
    pub rounds: usize,
    /// Time that requests arrived in a run, ms.
    pub run_ms: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Each system's policy and other parameters, in the file's order.
    pub systems: Vec<(String, String)>,
    /// The claims, judged.
    pub claims: Vec<MeasuredJudged<ReplayedFigure>>,
    /// Medians over the rounds that count.
    pub points: Vec<ReplayedPoint>,
    /// Every run.
    pub runs: Vec<ReplayedRun>,
    /// The command that repeats the measurement.
    pub command: String,
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

impl ReplayedReproduction {
    pub(super) fn new(
        experiment: &ReplayedExperiment,
        settings: &ReplayedSettings,
        runs: Vec<ReplayedRun>,
    ) -> Self {
        let extent = experiment.extent(settings.fast);
        let claims = experiment.claim.iter().map(|claim| judge(claim, &runs));
        let points = experiment
            .system
            .iter()
            .flat_map(|system| extent.loads.iter().map(|&load| (&system.name, load)))
            .map(|(system, load)| point(system, load, &runs));
        Self {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            figure: experiment.figure.clone(),
            testbed: on_one_line(&experiment.testbed),
            shortened: settings.fast,
            machine: MachineDescription::read()
                .map_or_else(|error| error.to_string(), |it| it.to_string()),
            workload: experiment.replay.workload.clone(),
            workers: experiment.replay.workers,
            rounds: extent.rounds,
            run_ms: extent.run_ms,
            seed: settings.seed,
            systems: experiment
                .system
                .iter()
                .map(|system| (system.name.clone(), system.how()))
                .collect(),
            claims: claims.collect(),
            points: points.collect(),
            command: command(experiment, settings),
            runs,
        }
    }
}

fn command(experiment: &ReplayedExperiment, settings: &ReplayedSettings) -> String {
    let (name, seed) = (&experiment.name, settings.seed);
    let fast = if settings.fast { " --fast" } else { "" };
    format!("headway reproduce {name} --seed {seed}{fast}")
}

fn point(system: &str, load: f64, runs: &[ReplayedRun]) -> ReplayedPoint {
    let counted: Vec<&ReplayedRun> = counted(runs, SystemAtPlace::anywhere(system))
        .filter(|run| run.load == load)
        .collect();
    ReplayedPoint {
        system: system.into(),
        load,
        rounds: counted.len(),
        untouched_fraction: median(counted.iter().map(|run| run.untouched_fraction)),
        figures: RunFigure::SHOWN
            .map(|seen: RunFigure| {
                let live = median(counted.iter().map(|run| seen.live(run)));
                (
                    seen,
                    live,
                    median(counted.iter().map(|run| seen.simulated(run))),
                )
            })
            .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::ReplayedClaim;
    use super::super::run::ReplayedFigures;
    use super::*;
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
        let here = point("mine", 0.7, &runs);
        assert_eq!(
            (here.rounds, here.figures.len()),
            (2, RunFigure::SHOWN.len())
        );
    }
}
