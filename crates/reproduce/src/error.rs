//! What can be wrong with an experiment.

/// Why an experiment cannot be read or run.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The file, or something it says.
    #[error("experiment {name}: {problem}")]
    File {
        /// The experiment's name.
        name: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// A simulation.
    #[error(transparent)]
    Sim(#[from] headway_sim::SimError),
    /// A capacity search.
    #[error(transparent)]
    Capacity(#[from] headway_sim::CapacityError),
    /// A policy's name or parameters.
    #[error(transparent)]
    Policy(#[from] headway_policy::spec::SpecError),
    /// A workload.
    #[error(transparent)]
    Workload(#[from] headway_workload::Error),
    /// An SLO.
    #[error(transparent)]
    Slo(#[from] headway_report::SloError),
}

impl ReproduceError {
    /// Something that the file of the experiment called `name` says.
    pub fn file(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::File {
            name: name.into(),
            problem: problem.to_string(),
        }
    }
}
