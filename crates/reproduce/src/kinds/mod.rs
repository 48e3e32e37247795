//! Kinds of measurements, one file each.
//!
//! A new kind needs three things: a struct that is read from an experiment's `[[measure]]` table, a line
//! in [`Measurement`], and [`ExperimentKind::tasks`], which cuts the work into tasks that run in parallel.
//! Every task yields [`Datum`](crate::Datum)s; claims, tables and charts are made from those alone.

mod capacity;
mod host;
mod kind;
mod overhead;
mod phases;
mod servers;
mod setting;
mod superposed;
mod sweep;
mod vary;

pub use capacity::CapacityMeasurement;
pub use host::{HostFigure, HostMeasurement};
pub use kind::{ExperimentKind, Task};
pub use overhead::{MechanismCosts, Overhead};
pub use phases::Phases;
pub use servers::ServersMeasurement;
pub use setting::{ServerChanges, Setting};
pub use superposed::Superposed;
pub use sweep::Sweep;
pub use vary::Vary;

use crate::ReproduceError;
use serde::Deserialize;

/// A `[[measure]]` table: `kind` names the variant, and the other keys are its fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Measurement {
    /// The highest load that meets an SLO.
    Capacity(CapacityMeasurement),
    /// Figures over load, or over a parameter at one load.
    Sweep(Sweep),
    /// One run through the phases of a workload.
    Phases(Phases),
    /// Requests, utilization and slowdown of each server of a rack.
    Servers(ServersMeasurement),
    /// Superposed streams of requests, each with its own arrivals.
    Superposed(Superposed),
    /// Concord's model of overheads.
    Overhead(Overhead),
    /// Applications that trade a host's cores.
    Host(HostMeasurement),
}

impl Measurement {
    fn kind(&self) -> &dyn ExperimentKind {
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

impl ExperimentKind for Measurement {
    fn tasks(&self, setting: &Setting<'_>) -> Result<Vec<Task>, ReproduceError> {
        self.kind().tasks(setting)
    }

    fn axis(&self) -> String {
        self.kind().axis()
    }

    fn id(&self) -> &str {
        self.kind().id()
    }
}
