//! The result of an experiment.

use crate::{
    ClaimVerdict, ExperimentFile, Figures, Judged, PaperFigure, ReproduceError, RunLength,
};
use serde::Serialize;

/// A reproduced figure or table: the measured figures beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The paper's figure.
    #[serde(flatten)]
    pub about: PaperFigure,
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
            about: experiment.paper_figure(),
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
