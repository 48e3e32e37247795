//! One server in virtual time, fed and stepped by someone else: the part a rack or a host is
//! made of.

mod build;
mod request;
mod standing;

pub use build::{instructed, server};
pub use request::{Left, NEVER, SimRequest, Sink, Work};
pub use standing::{Directed, SimulatedServer, Standing, WorkerView};
pub(crate) use standing::{Recorded, Simulated};
