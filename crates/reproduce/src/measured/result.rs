//! The figures of a kind, measured and simulated, beside the paper's claims.

use std::fmt::Debug;
use std::path::PathBuf;

use headway_machine::MachineDescription;
use serde::Serialize;

use super::claim::{MeasuredClaim, MeasuredJudged, judge};
use super::experiment::{ExperimentFields, MeasuredExperiment};
use super::extent::MeasuredExtent as _;
use super::rounds::CompleteRounds;
use crate::PaperFigure;

/// Settings of a measurement.
#[derive(Clone, Debug)]
pub struct MeasuredSettings {
    /// Path of the command `headway`, for kinds that start its processes.
    pub command: PathBuf,
    /// Whether to run the short version.
    pub fast: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

/// A kind of figure whose runs are measured and simulated.
pub trait MeasuredKind: MeasuredExperiment<Claim: MeasuredClaim> + Clone + Debug {
    /// The parts of a result that other kinds lack.
    type Details: Clone + Debug + Serialize;
    /// Medians over the rounds that count.
    type Point: Clone + Debug + Serialize;

    /// Name and policy of each system, in the file's order.
    fn systems(&self) -> Vec<(String, String)>;

    /// The cores of each system for tables, in the same order.
    fn system_cores(&self) -> Vec<String>;

    /// The medians of every system.
    fn points(&self, extent: &Self::Extent, runs: &[RunOf<Self>]) -> Vec<Self::Point>;
}

/// The runs of a kind.
pub type RunOf<K> = <<K as ExperimentFields>::Claim as MeasuredClaim>::Run;
/// The claimed figures of a kind.
pub type FigureOf<K> = <<K as ExperimentFields>::Claim as MeasuredClaim>::Figure;

/// A figure of a kind that is measured on this machine and simulated.
#[derive(Clone, Debug, Serialize)]
#[serde(bound = "")]
pub struct MeasuredReproduction<K: MeasuredKind> {
    /// The paper's figure.
    #[serde(flatten)]
    pub about: PaperFigure,
    /// Whether this is the short version.
    pub shortened: bool,
    /// This machine.
    pub machine: String,
    /// The parts that other kinds lack.
    #[serde(flatten)]
    pub details: K::Details,
    /// Number of rounds that were complete.
    pub rounds: usize,
    /// Whether the measurement was ended before its last round.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Seed of all random choices.
    pub seed: u64,
    /// Name and policy of each system, in the file's order.
    pub systems: Vec<(String, String)>,
    /// The cores of each system, in the same order: those of its workers, then those beside them.
    pub system_cores: Vec<String>,
    /// The claims, judged.
    pub claims: Vec<MeasuredJudged<FigureOf<K>>>,
    /// Medians over the rounds that count.
    pub points: Vec<K::Point>,
    /// Every run.
    pub runs: Vec<RunOf<K>>,
    /// The command that repeats the measurement.
    pub command: String,
}

impl<K: MeasuredKind> MeasuredReproduction<K> {
    pub(crate) fn new(
        experiment: &K,
        settings: &MeasuredSettings,
        details: K::Details,
        measured: CompleteRounds<RunOf<K>>,
    ) -> Self {
        let CompleteRounds { runs, rounds } = measured;
        let about = experiment.paper_figure();
        let extent = experiment.extent(settings.fast);
        let claims = experiment.claims().iter();
        let fast = if settings.fast { " --fast" } else { "" };
        Self {
            shortened: settings.fast,
            machine: this_machine(),
            details,
            rounds,
            cut_off: rounds < extent.rounds(),
            seed: settings.seed,
            systems: experiment.systems(),
            system_cores: experiment.system_cores(),
            claims: claims.map(|claim| judge(claim, &runs)).collect(),
            points: experiment.points(extent, &runs),
            runs,
            command: format!(
                "headway reproduce {} --seed {}{fast}",
                about.name, settings.seed
            ),
            about,
        }
    }
}

/// This machine in words.
pub(crate) fn this_machine() -> String {
    MachineDescription::read().map_or_else(|error| error.to_string(), |it| it.to_string())
}
