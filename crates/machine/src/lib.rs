//! This machine: its clock, its cores, its noise.
//!
//! Everything a live run needs to know about the place it runs in, and nothing about scheduling:
//!
//! - [`Clock`]: nanoseconds from the time-stamp counter, cheap enough to read at every probe;
//! - [`histogram`]: how long things took, counted at the price of an addition;
//! - [`Topology`]: the cores this process may use;
//! - [`MachineDescription`]: the description of the machine in a report;
//! - [`stderr`]: lines without a lock;
//! - [`thread`]: naming, pinning and raising threads;
//! - [`noise`]: how much time the machine takes away from a thread that never sleeps;
//! - [`doctor`]: the features that this machine supports, and remedies for those that it lacks.

#[cfg(not(target_os = "linux"))]
compile_error!("headway-machine reads Linux's sysfs, procfs and scheduler interfaces");

pub mod clock;
pub mod description;
pub mod doctor;
pub mod histogram;
pub mod noise;
pub mod rss;
pub mod stderr;
pub mod thread;
pub mod topology;

pub use clock::Clock;
pub use description::MachineDescription;
pub use noise::{GapLog, NoiseSummary};
pub use topology::Topology;
