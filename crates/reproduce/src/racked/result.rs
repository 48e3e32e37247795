//! The measured figures beside the paper's claims.

use headway_machine::MachineDescription;
use serde::Serialize;

use super::claim::RackedFigure;
use super::experiment::RackedExperiment;
use super::measure::RackedSettings;
use super::run::{RackedRun, RackedTail, p99_ms};
use crate::measured::MeasuredExperiment as _;
use crate::measured::claim::{MeasuredJudged, SystemAtPlace, counted, judge};
use crate::measured::rounds::median;
use crate::text::on_one_line;

/// A figure of racks measured on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct RackedReproduction {
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
    /// Numbers of servers, and of workers of each.
    pub servers: [usize; 2],
    /// Offered load of all workers.
    pub load: f64,
    /// Number of rounds of each system.
    pub rounds: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Each system's policy and its servers' policy, in the file's order.
    pub systems: Vec<(String, String)>,
    /// The claims, judged.
    pub claims: Vec<MeasuredJudged<RackedFigure>>,
    /// Medians over the rounds that count.
    pub points: Vec<RackedPoint>,
    /// Every run.
    pub runs: Vec<RackedRun>,
    /// The command that repeats the measurement.
    pub command: String,
}

/// A system's tails: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct RackedPoint {
    /// The system's name.
    pub system: String,
    /// Number of rounds that count.
    pub rounds: usize,
    /// Measured tails, in the order of the phases.
    pub live: Vec<RackedTail>,
    /// Simulated tails, in the same order.
    pub simulated: Vec<RackedTail>,
}

impl RackedReproduction {
    pub(super) fn new(
        experiment: &RackedExperiment,
        settings: &RackedSettings,
        runs: Vec<RackedRun>,
    ) -> Self {
        let fast = if settings.fast { " --fast" } else { "" };
        let systems = experiment.system.iter();
        Self {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            figure: experiment.figure.clone(),
            testbed: on_one_line(&experiment.testbed),
            shortened: settings.fast,
            machine: MachineDescription::read()
                .map_or_else(|error| error.to_string(), |it| it.to_string()),
            servers: [experiment.rack.servers, experiment.rack.workers],
            load: experiment.rack.load,
            rounds: experiment.extent(settings.fast).rounds,
            seed: settings.seed,
            systems: systems
                .map(|system| (system.name.clone(), system.simulated()))
                .collect(),
            claims: experiment
                .claim
                .iter()
                .map(|claim| judge(claim, &runs))
                .collect(),
            points: experiment
                .system
                .iter()
                .map(|system| point(&system.name, &runs))
                .collect(),
            command: format!(
                "headway reproduce {} --seed {}{fast}",
                experiment.name, settings.seed
            ),
            runs,
        }
    }
}

fn point(system: &str, runs: &[RackedRun]) -> RackedPoint {
    let counted: Vec<&RackedRun> = counted(runs, SystemAtPlace::anywhere(system)).collect();
    let medians = |side: fn(&RackedRun) -> &[RackedTail]| {
        let of_first = counted.first().map_or(&[][..], |run| side(run));
        let of_all = |tail: &RackedTail| RackedTail {
            p99_ms: median(
                counted
                    .iter()
                    .map(|run| p99_ms(side(run), tail.phase, tail.during, &tail.class)),
            ),
            ..tail.clone()
        };
        of_first.iter().map(of_all).collect()
    };
    RackedPoint {
        system: system.into(),
        rounds: counted.len(),
        live: medians(|run| &run.live),
        simulated: medians(|run| &run.simulated),
    }
}
