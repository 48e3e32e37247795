//! One run of one system, as the live server and the simulator saw it.

use headway_report::Overall;
use serde::Serialize;

/// One system at one load in one round.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedRun {
    /// Which round, from 0.
    pub round: usize,
    /// Offered load of the workers.
    pub load: f64,
    /// The system's name.
    pub system: String,
    /// Whether the machine left enough of the run alone for it to count.
    pub counts: bool,
    /// The part of the requests that the machine left alone.
    pub untouched_fraction: f64,
    /// The part of the time that the machine took.
    pub lost_fraction: f64,
    /// Times that a request was interrupted.
    pub preemptions: u64,
    /// Times that a request's quantum ended and it went on.
    pub renewals: u64,
    /// The requests that the machine left alone, live; its interruptions are of all requests.
    pub live: Side,
    /// The same requests, simulated.
    pub simulated: Side,
    /// All requests, live.
    pub all: Overall,
}

/// A run as one side saw it.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Latencies and slowdowns.
    pub overall: Overall,
    /// Interruptions a request.
    pub preemptions_each: f64,
}
