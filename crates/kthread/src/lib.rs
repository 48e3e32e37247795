//! Kthreads: the kernel threads of an application, each of which runs on a core while it is granted one (Shenango § 4.1).
//!
//! An application has as many kthreads as it may have cores. An *arbiter* grants and revokes the cores; a [`CoreSource`] is the application's
//! side of it. [`Standalone`] replaces the arbiter where there is none: every kthread has a core whenever it wants one, and otherwise sleeps.
//!
//! Kthread and arbiter share two cache lines, each written by one side: [`KthreadLine`] shows the kthread's waiting work, from which the
//! arbiter detects congestion, and the last grant that the kthread has left. [`OrderLine`] shows the last grant of a core and the last revoked
//! one. Grants are numbered, so a late order cannot revoke the next grant.

mod at_signal;
mod lines;
mod source;
mod standalone;

pub use at_signal::AtSignal;
pub use lines::{Grant, KthreadLine, OrderLine, now_ns};
pub use source::CoreSource;
pub use standalone::Standalone;
