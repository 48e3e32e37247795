//! The result of an experiment.

use crate::text::on_one_line;
use crate::{ClaimVerdict, ExperimentFile, Figures, Judged, ReproduceError, RunLength};
use serde::Serialize;

/// A reproduced figure or table: the measured figures beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The experiment's name.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The paper.
    pub paper: String,
    /// Number of the figure or table in the paper.
    pub figure: String,
    /// The parts of the paper's figure that the model lacks.
    pub testbed: String,
    /// Whether the runs were shortened: tails of shortened runs are rough.
    pub shortened: bool,
    /// The claims, judged.
    pub claims: Vec<Judged>,
    /// All measured figures.
    pub figures: Figures,
    /// The command that repeats this result.
    pub command: String,
    /// The commands that repeat its tasks, for those that flags can express.
    pub commands: Vec<String>,
}

impl Reproduction {
    pub(crate) fn new(
        experiment: &ExperimentFile,
        extent: RunLength,
        figures: Figures,
        commands: Vec<String>,
    ) -> Result<Self, ReproduceError> {
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
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            figure: experiment.figure.clone(),
            testbed: on_one_line(&experiment.testbed),
            shortened: extent != RunLength::Full,
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
