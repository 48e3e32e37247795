//! Kthreads: the kernel threads of an application, each of which runs on a core while it is granted one (Shenango § 4.1).
//!
//! An application has as many kthreads as it may have cores. An *arbiter* grants and revokes the cores; a [`CoreSource`] is the application's
//! side of it. [`Standalone`] stands in where there is no arbiter: every kthread has a core whenever it wants one, and sleeps meanwhile.
//!
//! Kthread and arbiter share two cache lines, each written by one side: [`KthreadLine`] shows what waits at the kthread, from which the arbiter
//! detects congestion, and which grant it has left; [`OrderLine`] says which grants it got, and which it must leave. Grants are numbered, so
//! that an order that comes late cannot meet the next grant.

mod barrier;
mod lines;
mod source;
mod standalone;

pub use barrier::SleeperBarrier;
pub use lines::{Grant, KthreadLine, OrderLine, now_ns};
pub use source::CoreSource;
pub use standalone::Standalone;
