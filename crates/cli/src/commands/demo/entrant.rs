//! The servers that take part, and the load offered to each.

use headway_policy::server::systems::ServerSpec;
use std::time::Duration;

/// A policy that takes part.
pub(crate) struct Entrant {
    pub(crate) name: String,
    pub(crate) policy: ServerSpec,
}

/// What is offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) rate_rps: f64,
    pub(crate) duration: Duration,
    /// The same seed gives the same requests at the same times, whatever the policy.
    pub(crate) seed: u64,
    /// Leading fraction that is not measured.
    pub(crate) warm_up: f64,
}
