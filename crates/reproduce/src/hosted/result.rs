//! The measured figures beside the paper's claims.

use headway_machine::MachineDescription;
use serde::Serialize;

use super::claim::HostedClaimFigure;
use super::experiment::HostedExperiment;
use super::measure::HostedSettings;
use super::run::{HostedFigures, HostedRun};
use crate::Reproduction;
use crate::measured::MeasuredExperiment as _;
use crate::measured::claim::{MeasuredJudged, SystemAtPlace, counted, judge};
use crate::measured::rounds::median;
use crate::text::on_one_line;

/// A figure of a host measured on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct HostedReproduction {
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
    /// Processors of this machine.
    pub processors: usize,
    /// Cores that the allocator assigns.
    pub cores: usize,
    /// Number of rounds of each system.
    pub rounds: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Each system's allocator, in the file's order.
    pub systems: Vec<(String, String)>,
    /// The claims, judged.
    pub claims: Vec<MeasuredJudged<HostedClaimFigure>>,
    /// Medians over the rounds that count.
    pub points: Vec<HostedPoint>,
    /// Every run.
    pub runs: Vec<HostedRun>,
    /// The simulation of the paper's own host.
    pub papers: Option<Reproduction>,
    /// The command that repeats the measurement.
    pub command: String,
}

/// A system's figures at a place: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct HostedPoint {
    /// The system's name.
    pub system: String,
    /// The place's name.
    pub place: String,
    /// Number of rounds that count.
    pub rounds: usize,
    /// The measured figures.
    pub live: HostedFigures,
    /// The simulated figures.
    pub simulated: HostedFigures,
}

impl HostedReproduction {
    pub(super) fn new(
        experiment: &HostedExperiment,
        settings: &HostedSettings,
        runs: Vec<HostedRun>,
        papers: Option<Reproduction>,
    ) -> Self {
        let fast = if settings.fast { " --fast" } else { "" };
        let places = experiment.place.iter();
        let pairs = places.flat_map(|place| experiment.system.iter().map(move |it| (place, it)));
        Self {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            figure: experiment.figure.clone(),
            testbed: on_one_line(&experiment.testbed),
            shortened: settings.fast,
            machine: MachineDescription::read()
                .map_or_else(|error| error.to_string(), |it| it.to_string()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            cores: experiment.host.cores,
            rounds: experiment.extent(settings.fast).rounds,
            seed: settings.seed,
            systems: experiment
                .system
                .iter()
                .map(|system| (system.name.clone(), system.policy.clone()))
                .collect(),
            claims: experiment
                .claim
                .iter()
                .map(|claim| judge(claim, &runs))
                .collect(),
            points: pairs
                .map(|(place, system)| point(&system.name, &place.name, &runs))
                .collect(),
            command: format!(
                "headway reproduce {} --seed {}{fast}",
                experiment.name, settings.seed
            ),
            papers,
            runs,
        }
    }
}

fn point(system: &str, place: &str, runs: &[HostedRun]) -> HostedPoint {
    let at = SystemAtPlace {
        system,
        place: Some(place),
    };
    let counted: Vec<&HostedRun> = counted(runs, at).collect();
    let medians = |side: fn(&HostedRun) -> &HostedFigures| {
        let of =
            |figure: fn(&HostedFigures) -> f64| median(counted.iter().map(|run| figure(side(run))));
        HostedFigures {
            p999_us: of(|it| it.p999_us),
            worst_p999_us: of(|it| it.worst_p999_us),
            batch_cores: of(|it| it.batch_cores),
            efficiency: of(|it| it.efficiency),
            reallocations_per_s: of(|it| it.reallocations_per_s),
        }
    };
    HostedPoint {
        system: system.into(),
        place: place.into(),
        rounds: counted.len(),
        live: medians(|run| &run.live),
        simulated: medians(|run| &run.simulated),
    }
}
