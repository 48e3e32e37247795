//! The figures of a run.

use serde::{Deserialize, Serialize};

use super::run::{ReplayedFigures, ReplayedRun};

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RunFigure {
    /// The median of the slowdowns of all requests.
    #[serde(rename = "slowdown.p50")]
    SlowdownP50,
    /// The 90th percentile of the slowdowns.
    #[serde(rename = "slowdown.p90")]
    SlowdownP90,
    /// The 99th percentile of the slowdowns.
    #[serde(rename = "slowdown.p99")]
    SlowdownP99,
    /// The 99.9th percentile of the slowdowns.
    #[serde(rename = "slowdown.p999")]
    SlowdownP999,
    /// The 99.9th percentile of the latencies of all requests, µs.
    #[serde(rename = "latency.p999")]
    LatencyP999,
    /// Interruptions per request.
    #[serde(rename = "preemptions")]
    Preemptions,
    /// The fraction of the quanta that ended without an interruption of their running request: 0 to 1. Live only.
    #[serde(rename = "avoided")]
    Avoided,
}

impl RunFigure {
    /// The figures that tables show.
    pub const SHOWN: [Self; 6] = [
        Self::SlowdownP50,
        Self::SlowdownP99,
        Self::SlowdownP999,
        Self::LatencyP999,
        Self::Preemptions,
        Self::Avoided,
    ];

    /// The figure in words, with the unit.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SlowdownP50 => "slowdown p50",
            Self::SlowdownP90 => "slowdown p90",
            Self::SlowdownP99 => "slowdown p99",
            Self::SlowdownP999 => "slowdown p99.9",
            Self::LatencyP999 => "latency p99.9, µs",
            Self::Preemptions => "interruptions a request",
            Self::Avoided => "interruptions avoided",
        }
    }

    /// The live figure.
    #[must_use]
    pub fn live(self, run: &ReplayedRun) -> f64 {
        match self {
            Self::Avoided => run.renewals as f64 / (run.renewals + run.preemptions) as f64,
            _ => self.of(&run.live),
        }
    }

    /// The simulated figure; not a number for a figure without a simulated counterpart.
    #[must_use]
    pub fn simulated(self, run: &ReplayedRun) -> f64 {
        self.of(&run.simulated)
    }

    fn of(self, side: &ReplayedFigures) -> f64 {
        let slowdown = &side.overall.slowdown;
        match self {
            Self::SlowdownP50 => slowdown.p50,
            Self::SlowdownP90 => slowdown.p90,
            Self::SlowdownP99 => slowdown.p99,
            Self::SlowdownP999 => slowdown.p999,
            Self::LatencyP999 => side.overall.latency_us.p999,
            Self::Preemptions => side.preemptions_each,
            Self::Avoided => f64::NAN,
        }
    }
}
