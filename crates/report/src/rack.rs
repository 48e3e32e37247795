//! The figures of a rack's run beyond those of a server's.

use crate::null::null_as_nan;
use serde::{Deserialize, Serialize};

/// The figures of one server of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Measured requests that it answered first.
    pub requests: u64,
    /// Part of its cores' time that was busy, 0 to 1.
    pub utilization: f64,
    /// p99 of these requests' slowdown; not a number, written as `null`, if there are none.
    #[serde(deserialize_with = "null_as_nan")]
    pub slowdown_p99: f64,
}

/// The figures of a rack's switch, control plane and servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RackFigures {
    /// Requests sent to two servers.
    pub cloned: u64,
    /// Clones that a server could not start at once and dropped.
    pub clones_dropped: u64,
    /// Responses that the switch dropped because the other copy had been answered.
    pub filtered: u64,
    /// Responses to requests already answered that passed the switch's filter.
    pub duplicates: u64,
    /// Requests sent back to the switch.
    pub bounced: u64,
    /// New layouts of the rack that the control plane installed after the start.
    pub regenerated: u64,
    /// Each server.
    pub servers: Vec<ServerFigures>,
}
