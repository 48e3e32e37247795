//! Live runs without a network, calibration, and comparison with the simulator.
//!
//! A [`Trial`] runs the real server, real threads and rings and handlers that spin, on arrivals
//! that a workload's generator draws and the replay datapath delivers at their times. What differs
//! from a simulation of the same arrivals is then the machine alone: [`calibrate`] measures what
//! it costs, [`compare`] checks that a simulation with those costs says what the server did.

pub mod calibrate;
pub mod compare;
pub mod datapath;
pub mod gaps;
mod probe;
mod schedules;
mod trial;

pub use gaps::{Aftermath, Gap};
pub use probe::Disturbance;
pub use trial::{Observed, Served, Trial, TrialError};
