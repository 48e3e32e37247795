//! One request: how it comes in, how a handler runs it, in one piece or in slices, and how it is answered or refused.
//!
//! A thread [takes it in](intake). An [executor] calls the [handler](service) and sends the response. Where requests are interrupted, they run
//! on [fibers], one [assignment] after another; [`run_slice`] is the part of a slice that all engines have in common.

pub(crate) mod assignment;
pub(crate) mod executor;
pub(crate) mod fibers;
pub(crate) mod intake;
pub(crate) mod overflow;
pub(crate) mod panics;
pub(crate) mod refusal;
pub(crate) mod run_slice;
pub(crate) mod server_queue;
pub(crate) mod service;
pub(crate) mod slice;
pub(crate) mod verdict;
