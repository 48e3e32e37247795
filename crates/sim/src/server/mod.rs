//! One server in virtual time, fed and stepped by its driver: the component of racks and hosts.

mod build;
mod request;
mod standing;

pub use build::{instructed, server};
pub use request::{Left, NEVER, SimRequest, Sink, Work};
pub use standing::{Directed, SimulatedServer, Standing, WorkerView};
pub(crate) use standing::{Recorded, Simulated};
