//! One pass of the daemon: it reads the kthreads' lines, asks the allocator, and carries its decisions out through the kernel.

mod admission;
mod cycle;
mod engine;
mod evicted;
mod journal;
mod member;
mod packets;
mod report;
mod unusable;

pub use admission::AdmissionError;
pub use cycle::{CycleStep, PassCycle};
pub use engine::Arbiter;
pub use member::{Newcomer, NewcomerWork};
pub use report::{AppReport, CoreReport, HostReport, NetworkReport, TenancyChange, TimesReport};
pub use unusable::UnusableCore;
