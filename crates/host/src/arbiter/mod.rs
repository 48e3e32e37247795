//! One pass of the daemon: it hears what kthreads show, asks the allocator, and tells the kernel. It decides nothing.

mod engine;
mod journal;
mod member;
mod report;

pub use engine::{AdmissionError, Arbiter};
pub use member::{Newcomer, NewcomerWork};
pub use report::{AppReport, CoreReport, HostReport, TenancyChange, TimesReport};
