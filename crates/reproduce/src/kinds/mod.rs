//! Ways to measure, a file each.
//!
//! A new one is a struct that its file's `[[measure]]` table is read into, a line in [`Measurement`],
//! and [`Kind::tasks`], which cuts the work into pieces that run side by side. Every piece gives
//! [`Datum`]s; claims, tables and charts are made from those alone.

mod capacity;
mod host;
mod overhead;
mod phases;
mod servers;
mod setting;
mod superposed;
mod sweep;
mod vary;

pub use capacity::CapacityMeasurement;
pub use host::{HostFigure, HostMeasurement};
pub use overhead::{MechanismCosts, Overhead};
pub use phases::Phases;
pub use servers::ServersMeasurement;
pub use setting::{On, Setting};
pub use superposed::Superposed;
pub use sweep::Sweep;
pub use vary::Vary;

use crate::{Datum, Error};
use serde::Deserialize;

/// A piece of an experiment's work, independent of all others.
pub struct Task {
    /// The command that repeats it, where the command line can say it.
    pub command: Option<String>,
    /// The work.
    pub run: Box<dyn Fn() -> Result<Vec<Datum>, Error> + Send + Sync>,
}

impl Task {
    /// A piece of work that no plain command repeats.
    pub fn new(run: impl Fn() -> Result<Vec<Datum>, Error> + Send + Sync + 'static) -> Self {
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
pub trait Kind {
    /// The work, in pieces. What cannot be (an unknown class, a policy that does not exist) is an
    /// error here, before anything runs.
    ///
    /// # Errors
    /// The first mistake in the file.
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, Error>;

    /// The axis of its curves, with the unit; empty where it measures no curves.
    fn axis(&self) -> String {
        String::new()
    }

    /// What tells its figures from those of the experiment's other measurements; may be empty.
    fn id(&self) -> &str {
        ""
    }
}

/// A `[[measure]]` table: `kind` names the way, the rest is its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Measurement {
    /// The highest load that meets an SLO.
    Capacity(CapacityMeasurement),
    /// Figures over load, or over a parameter at one load.
    Sweep(Sweep),
    /// One run through the phases of a workload.
    Phases(Phases),
    /// What each server of a rack gets.
    Servers(ServersMeasurement),
    /// Streams of requests, each with its own arrivals, over one another.
    Superposed(Superposed),
    /// Concord's model of overheads.
    Overhead(Overhead),
    /// Applications that trade a host's cores.
    Host(HostMeasurement),
}

impl Measurement {
    fn kind(&self) -> &dyn Kind {
        match self {
            Self::Capacity(kind) => kind,
            Self::Sweep(kind) => kind,
            Self::Phases(kind) => kind,
            Self::Servers(kind) => kind,
            Self::Superposed(kind) => kind,
            Self::Overhead(kind) => kind,
            Self::Host(kind) => kind,
        }
    }
}

impl Kind for Measurement {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, Error> {
        self.kind().tasks(setting)
    }

    fn axis(&self) -> String {
        self.kind().axis()
    }

    fn id(&self) -> &str {
        self.kind().id()
    }
}
