//! The rack: which server gets the request (Pallas, ATC '25, and what it is compared with).
//!
//! Two parts, as on a programmable switch. The *step* ([`Switch`]) is what happens to each packet: a few table look-ups and
//! register updates, no more than a pipeline can do. The *control plane* ([`ControlPlane`]) reads the step's registers now and
//! then and writes its tables. A third part lives on each server: the [`Agent`], which says what is bounced back.
//!
//! | concern | file |
//! |---|---|
//! | what each type needs | [`DemandMonitor`], [`Demand`] |
//! | which types are served together | [`Grouping`] |
//! | how many cores a group gets, and where | [`provision`], [`RackLayout`] |
//! | to which server the next request goes | [`Wheel`] |
//! | more than a group can take, for 20 µs | [`Burst`], [`Duplicates`] |
//! | more than a group drains, until the next layout | [`Overflow`], [`ServerLoads`] |
//! | all that per packet | [`Shaper`] |
//! | its tables for planes of another kind | [`StepTables`] |
//! | all that per interval | [`ControlPlane`], [`ControlRules`] |
//! | what an earlier control plane left in the tables | [`LastLayout`] |
//! | which servers answer | [`Liveness`] |
//! | racks behind a core switch | [`Tiers`], [`TieredLayout`] |
//!
//! The control plane cannot score its candidates itself, since a policy does not call a simulator: it offers
//! [`ControlPlane::candidates`], an engine scores them, [`ControlPlane::choose`] goes on.

mod agent;
mod balance;
mod bounded;
mod burst;
mod control;
mod demand;
mod duplicates;
mod grouping;
mod horus;
mod layout;
mod liveness;
mod monitor;
mod netclone;
mod overflow;
mod packet;
mod present;
mod provision;
mod resumed;
mod rules;
mod shaper;
mod shortest;
mod spread;
mod step_tables;
mod switch;
pub mod systems;
mod tiered;
mod tiers;

pub use agent::{Agent, Bouncing, Duty, Part};
pub use balance::{Turns, Wheel};
pub use bounded::BoundedSwitch;
pub use burst::Burst;
pub use control::ControlPlane;
pub use demand::{Demand, DemandSample};
pub use duplicates::Duplicates;
pub use grouping::{Grouping, Likeness};
pub use horus::Horus;
pub use layout::RackLayout;
pub use liveness::{Liveness, LivenessChange, LivenessRules};
pub use monitor::{DemandMonitor, DemandReading};
pub use netclone::NetClone;
pub use overflow::{Overflow, ServerLoads};
pub use packet::{Forward, Mark, Packet, Reply, ServerId};
pub use provision::provision;
pub use resumed::LastLayout;
pub use rules::{ControlRules, Delta, Drift, Objective};
pub use shaper::{Cloning, Shaper};
pub use shortest::{Reported, ShortestSwitch};
pub use spread::{RandomSwitch, RoundRobinSwitch};
pub use step_tables::{GroupTurns, StepTables, StepTablesError};
pub use switch::{LaidOutTables, Switch};
pub use systems::{RackShape, RackSystem, RackVisit};
pub use tiered::TieredLayout;
pub use tiers::Tiers;
