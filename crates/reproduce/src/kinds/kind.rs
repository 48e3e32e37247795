//! A kind of measurement, and the tasks into which it cuts its work.

use super::setting::Setting;
use crate::{Datum, ReproduceError};

/// A part of an experiment's work that is independent of all others.
pub struct Task {
    /// The command that repeats the task, if flags can express it.
    pub command: Option<String>,
    /// The work.
    pub run: Box<dyn Fn() -> Result<Vec<Datum>, ReproduceError> + Send + Sync>,
}

impl Task {
    /// A task without a command that repeats it.
    pub fn new(
        run: impl Fn() -> Result<Vec<Datum>, ReproduceError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            command: None,
            run: Box::new(run),
        }
    }

    /// Sets the axis of the task's points; a single figure has none.
    #[must_use]
    pub(crate) fn on_axis(self, axis: String) -> Self {
        let Self { command, run } = self;
        let on_axis = move |mut datum: Datum| {
            if datum.x.is_some() {
                datum.axis.clone_from(&axis);
            }
            datum
        };
        let run = move || Ok(run()?.into_iter().map(&on_axis).collect());
        Self::new(run).command(command)
    }

    /// Sets the command that repeats the task.
    #[must_use]
    pub fn command(mut self, command: Option<String>) -> Self {
        self.command = command;
        self
    }
}

/// A kind of measurement.
pub trait ExperimentKind {
    /// Cuts the work into tasks. Unknown classes and policies are errors here, before anything
    /// runs.
    ///
    /// # Errors
    /// The first mistake in the file.
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError>;

    /// Name and unit of the curves' axis; empty for a measurement without curves.
    fn axis(&self) -> String {
        String::new()
    }

    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    fn id(&self) -> &str {
        ""
    }
}
