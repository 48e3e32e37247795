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
    /// No experiment has this name.
    #[error("no experiment is called '{name}'; {remedy}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, or where the names are listed.
        remedy: String,
    },
    /// The experiment is measured on real cores, and not simulated.
    #[error(
        "'{name}' is measured live on this machine, and not simulated: `headway reproduce {name}` measures it"
    )]
    Live {
        /// The experiment's name or file.
        name: String,
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
