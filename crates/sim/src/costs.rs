//! What a real system pays for and an ideal one does not.

use serde::{Deserialize, Serialize};

/// Costs of the machinery, ns. All zero (the default) is the ideal system of the papers'
/// simulations; `headway calibrate` writes this machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// The dispatcher's work per request, serial: requests queue for it. Systems whose requests
    /// are steered by the network do not pay it.
    pub dispatch_ns: u64,
    /// From the dispatcher's decision to the worker's start.
    pub handoff_ns: u64,
    /// From a completion, or an interruption, to the dispatcher's knowing of it.
    pub completion_ns: u64,
    /// A worker's work per request beside the service itself: taking it up, the reply.
    pub overhead_ns: u64,
}

impl Costs {
    /// Whether this is the ideal system.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}
