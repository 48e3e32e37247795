//! One pass of the daemon: it hears what kthreads show, asks the allocator, and tells the kernel. It decides nothing.

mod admission;
mod engine;
mod journal;
mod member;
mod packets;
mod report;

pub use admission::AdmissionError;
pub use engine::Arbiter;
pub use member::{Newcomer, NewcomerWork};
pub use report::{AppReport, CoreReport, HostReport, NetworkReport, TenancyChange, TimesReport};
