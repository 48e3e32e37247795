//! The errors of an experiment.

/// Why an experiment cannot be read or run.
#[derive(thiserror::Error)]
pub enum ReproduceError {
    /// The file is missing, unreadable or invalid.
    #[error("experiment {name}: {problem}")]
    File {
        /// The experiment's name.
        name: String,
        /// The problem and its position.
        problem: String,
    },
    /// A simulation failed.
    #[error(transparent)]
    Sim(#[from] headway_sim::SimError),
    /// A capacity search failed.
    #[error(transparent)]
    Capacity(#[from] headway_sim::CapacityError),
    /// A policy's name or parameters are invalid.
    #[error(transparent)]
    Policy(#[from] headway_policy::spec::SpecError),
    /// A workload is missing or invalid.
    #[error(transparent)]
    Workload(#[from] headway_workload::Error),
    /// An SLO is invalid.
    #[error(transparent)]
    Slo(#[from] headway_report::SloError),
}

headway_words::debug_is_display!(ReproduceError);

impl ReproduceError {
    /// A problem in the file of the experiment called `name`.
    pub fn file(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::File {
            name: name.into(),
            problem: problem.to_string(),
        }
    }
}
