//! A way to measure, and the pieces that it cuts its work into.

use super::setting::Setting;
use crate::{Datum, ReproduceError};

/// A piece of an experiment's work, independent of all others.
pub struct Task {
    /// The command that repeats it, where the command line can say it.
    pub command: Option<String>,
    /// The work.
    pub run: Box<dyn Fn() -> Result<Vec<Datum>, ReproduceError> + Send + Sync>,
}

impl Task {
    /// A piece of work that no plain command repeats.
    pub fn new(
        run: impl Fn() -> Result<Vec<Datum>, ReproduceError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            command: None,
            run: Box::new(run),
        }
    }

    /// With the command that repeats it.
    #[must_use]
    pub fn command(mut self, command: Option<String>) -> Self {
        self.command = command;
        self
    }
}

/// A way to measure.
pub trait ExperimentKind {
    /// The work, in pieces. What cannot be (an unknown class, a policy that does not exist) is an
    /// error here, before anything runs.
    ///
    /// # Errors
    /// The first mistake in the file.
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError>;

    /// The axis of its curves, with the unit; empty where it measures no curves.
    fn axis(&self) -> String {
        String::new()
    }

    /// What tells its figures from those of the experiment's other measurements; may be empty.
    fn id(&self) -> &str {
        ""
    }
}
