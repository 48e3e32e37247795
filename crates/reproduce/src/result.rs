//! The result of an experiment.

use crate::text::on_one_line;
use crate::{ClaimVerdict, ExperimentFile, Figures, Judged, ReproduceError, RunLength};
use serde::Serialize;

/// A figure or table, reproduced: ours beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The experiment's name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Whose it is.
    pub paper: String,
    /// Which it is in the paper.
    pub figure: String,
    /// What the paper's figure includes that the model does not.
    pub testbed: String,
    /// Whether the runs were shortened: tails of shortened runs are rough.
    pub shortened: bool,
    /// The claims, judged.
    pub claims: Vec<Judged>,
    /// Everything measured.
    pub figures: Figures,
    /// What repeats this result.
    pub command: String,
    /// What repeats its parts, where the command line can say it.
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

    /// How many claims came to what: reproduced, as expected, deviating, not reproduced.
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
