//! Mistakes in what was asked.

use headway_plan::PlanError;
use headway_report::SloError;
use headway_sim::SimError;

/// A mistake in the input: where it is, and what is wrong there.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{place}: {sentence}")]
pub struct Mistake {
    /// The flag without its dashes: `queue-limit`.
    pub place: String,
    /// What is wrong, and the remedy.
    pub sentence: String,
}

headway_words::debug_is_display!(Mistake);

impl Mistake {
    /// A mistake at a flag, named without its dashes.
    pub fn at(place: impl Into<String>, sentence: impl std::fmt::Display) -> Self {
        Self {
            place: place.into(),
            sentence: sentence.to_string(),
        }
    }
}

/// Why a question has no answer.
#[derive(thiserror::Error)]
pub enum StudyError {
    /// The input.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The experiment.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The SLO.
    #[error(transparent)]
    Slo(#[from] SloError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

headway_words::debug_is_display!(StudyError);

impl From<headway_sim::CapacityError> for StudyError {
    fn from(error: headway_sim::CapacityError) -> Self {
        match error {
            headway_sim::CapacityError::Sim(error) => error.into(),
            headway_sim::CapacityError::Slo(error) => error.into(),
        }
    }
}
