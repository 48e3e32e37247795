//! What was measured, beside what the paper says.

use headway_machine::MachineDescription;
use serde::Serialize;

use super::claim::HostedJudged;
use super::experiment::HostedExperiment;
use super::measure::HostedSettings;
use super::run::{HostedFigures, HostedRun};
use crate::Reproduction;
use crate::live::median;
use crate::text::on_one_line;

/// A figure of a host measured on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct HostedReproduction {
    /// The experiment's name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Whose it is.
    pub paper: String,
    /// Which it is in the paper.
    pub figure: String,
    /// What the paper's testbed had that this machine has not.
    pub testbed: String,
    /// Whether it was a first impression only.
    pub shortened: bool,
    /// This machine.
    pub machine: String,
    /// Its processors.
    pub processors: usize,
    /// Cores that were dealt out.
    pub cores: usize,
    /// Rounds of each system.
    pub rounds: usize,
    /// Of everything random.
    pub seed: u64,
    /// Each system's allocator, in the file's order.
    pub systems: Vec<(String, String)>,
    /// The claims, judged.
    pub claims: Vec<HostedJudged>,
    /// Medians over the rounds that count.
    pub points: Vec<HostedPoint>,
    /// Every run.
    pub runs: Vec<HostedRun>,
    /// The simulation of the paper's own host.
    pub papers: Option<Reproduction>,
    /// What repeats it.
    pub command: String,
}

/// A system's figures at a place: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct HostedPoint {
    /// The system's name.
    pub system: String,
    /// The place's name.
    pub place: String,
    /// Rounds that count.
    pub rounds: usize,
    /// Measured.
    pub live: HostedFigures,
    /// Simulated.
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
                .map(|claim| claim.judge(&runs))
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
    let counted: Vec<&HostedRun> = runs
        .iter()
        .filter(|run| run.counts() && run.system == system && run.place == place)
        .collect();
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
