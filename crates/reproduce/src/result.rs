//! The result of an experiment.

use crate::{
    ClaimVerdict, ComparedSystem, Datum, ExperimentFile, Figures, Judged, PaperFigure,
    ReproduceError, RunLength,
};
use headway_policy::PolicySpec;
use headway_sim::SystemCores;
use serde::Serialize;

/// A reproduced figure or table: the measured figures beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The paper's figure.
    #[serde(flatten)]
    pub about: PaperFigure,
    /// Whether the runs were shortened: tails of shortened runs are rough.
    pub shortened: bool,
    /// The cores of each simulated system on the experiment's own server; a measurement may change the server.
    pub systems: Vec<SystemOnCores>,
    /// The claims, judged.
    pub claims: Vec<Judged>,
    /// All measured figures.
    pub figures: Figures,
    /// The command that repeats this result.
    pub command: String,
    /// The commands that repeat its tasks, for those that flags can express.
    pub commands: Vec<String>,
}

/// A simulated system and its cores.
#[derive(Clone, Debug, Serialize)]
pub struct SystemOnCores {
    /// The system's name.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// Its workers, a core each; in a rack those of all servers.
    pub workers: usize,
    /// All of its cores, with those that dispatch or keep the time.
    pub cores: usize,
    /// The cores of these that run requests.
    pub serving_cores: usize,
}

impl SystemOnCores {
    /// The systems whose policy does not vary.
    fn of(experiment: &ExperimentFile) -> Vec<Self> {
        let server = &experiment.server;
        let on_cores = |system: &ComparedSystem| {
            let policy: PolicySpec = system.policy.parse().ok()?;
            let cores = SystemCores::of(&policy, system.workers.unwrap_or(server.workers));
            Some(Self {
                name: system.name.clone(),
                policy: system.policy.clone(),
                workers: server.servers * cores.workers,
                cores: server.servers * cores.all(),
                serving_cores: server.servers * cores.serving(),
            })
        };
        experiment.system.iter().filter_map(on_cores).collect()
    }
}

impl Reproduction {
    /// Judges what the experiment's [tasks](ExperimentFile::tasks) gave, each task's figures in the tasks' order.
    ///
    /// # Errors
    /// A mistake in the file, or figures of another number of tasks.
    pub fn of(
        experiment: &ExperimentFile,
        extent: RunLength,
        given: Vec<Vec<Datum>>,
    ) -> Result<Self, ReproduceError> {
        let tasks = experiment.tasks(extent, None)?;
        if tasks.len() != given.len() {
            let problem = format!("{} of its {} tasks are done", given.len(), tasks.len());
            return Err(ReproduceError::file(&experiment.name, problem));
        }
        let mut figures = Figures::default();
        figures.extend(given.into_iter().flatten());
        let mut commands: Vec<String> = Vec::new();
        for command in tasks.into_iter().filter_map(|task| task.command) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        let claims: Result<Vec<Judged>, String> = experiment
            .claim
            .iter()
            .map(|claim: &crate::Claim| claim.judge(&figures))
            .collect();
        let claims = claims.map_err(|problem| ReproduceError::file(&experiment.name, problem))?;
        let fast = match extent {
            RunLength::Full => "",
            RunLength::Fast => " --fast",
            RunLength::AtMost(_) => "",
        };
        Ok(Self {
            about: experiment.paper_figure(),
            shortened: extent != RunLength::Full,
            systems: SystemOnCores::of(experiment),
            claims,
            figures,
            command: format!("headway reproduce {}{fast}", experiment.name),
            commands,
        })
    }

    /// Numbers of claims by verdict: reproduced, as expected, deviating, not reproduced.
    #[must_use]
    pub fn tally(&self) -> [usize; 4] {
        let mut tally = [0; 4];
        for claim in &self.claims {
            tally[match claim.verdict {
                ClaimVerdict::Reproduced => 0,
                ClaimVerdict::ExpectedDeviation => 1,
                ClaimVerdict::Deviates(_) => 2,
                ClaimVerdict::NotReproduced => 3,
            }] += 1;
        }
        tally
    }
}
