//! What only a rack's run has.

use crate::null::null_as_nan;
use serde::{Deserialize, Serialize};

/// What one server of a rack did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Measured requests that it answered first.
    pub requests: u64,
    /// Part of its cores' time that was busy, 0 to 1.
    pub utilization: f64,
    /// p99 of the slowdown of those requests; not a number, written as `null`, without any.
    #[serde(deserialize_with = "null_as_nan")]
    pub slowdown_p99: f64,
}

/// What a rack's switch, its control plane and its servers did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RackFigures {
    /// Requests sent to two servers.
    pub cloned: u64,
    /// Clones that a server could not start at once and dropped.
    pub clones_dropped: u64,
    /// Responses that the switch kept back, since the other copy had answered.
    pub filtered: u64,
    /// Responses to requests already answered that passed the switch's filter.
    pub duplicates: u64,
    /// Requests sent back to the switch.
    pub bounced: u64,
    /// Times that the control plane laid the rack out anew after the start.
    pub regenerated: u64,
    /// Each server.
    pub servers: Vec<ServerFigures>,
}
