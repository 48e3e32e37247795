//! Live runs by replay or over loopback, calibration, and comparison with the simulator.
//!
//! A [`Trial`] runs the real server, with real threads, rings and spinning handlers. A workload's
//! generator draws the arrivals, and the replay datapath delivers them at their times. So only the
//! machine differs from a simulation of the same arrivals: [`calibrate`] measures its costs, and
//! [`compare`] checks that a simulation with these costs predicts the server's latencies.

pub mod calibrate;
pub mod compare;
mod cores;
pub mod datapath;
pub mod gaps;
mod loopback;
mod observed;
mod play;
mod probe;
mod schedules;
mod trial;

pub use gaps::{Aftermath, Gap};
pub use loopback::LoopbackPath;
pub use observed::{Observed, Served};
pub use probe::Disturbance;
pub use trial::{Trial, TrialError};
