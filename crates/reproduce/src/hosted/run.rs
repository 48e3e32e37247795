//! One run of one system at one place: the figures of client, daemon and simulator.

use serde::{Deserialize, Serialize};

use crate::measured::{ClientCounts, MeasuredRun, SystemAtPlace};

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostedFigure {
    /// 99.9th percentile of latencies, µs.
    P999Us,
    /// 99.9th percentile of the worst 10 ms, by the requests' intended times, µs.
    WorstP999Us,
    /// Work of the batch program, in cores.
    BatchCores,
    /// Service time of the requests ÷ core time of the server.
    Efficiency,
    /// Grants of a core to an application, per second.
    ReallocationsPerS,
}

impl HostedFigure {
    /// All figures.
    pub const ALL: [Self; 5] = [
        Self::P999Us,
        Self::WorstP999Us,
        Self::BatchCores,
        Self::Efficiency,
        Self::ReallocationsPerS,
    ];

    /// The name in tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::P999Us => "p99.9, µs",
            Self::WorstP999Us => "worst 10 ms' p99.9, µs",
            Self::BatchCores => "batch work, cores",
            Self::Efficiency => "efficiency",
            Self::ReallocationsPerS => "reallocations/s",
        }
    }
}

/// The figures of a run; not a number for a missing one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostedFigures {
    /// 99.9th percentile of latencies, µs.
    pub p999_us: f64,
    /// 99.9th percentile of the worst 10 ms, µs.
    pub worst_p999_us: f64,
    /// Work of the batch program, in cores.
    pub batch_cores: f64,
    /// Service time of the requests ÷ core time of the server.
    pub efficiency: f64,
    /// Grants of a core to an application, per second.
    pub reallocations_per_s: f64,
}

impl HostedFigures {
    /// The figure of this kind.
    #[must_use]
    pub fn get(&self, figure: HostedFigure) -> f64 {
        match figure {
            HostedFigure::P999Us => self.p999_us,
            HostedFigure::WorstP999Us => self.worst_p999_us,
            HostedFigure::BatchCores => self.batch_cores,
            HostedFigure::Efficiency => self.efficiency,
            HostedFigure::ReallocationsPerS => self.reallocations_per_s,
        }
    }
}

/// One system at one place in one round.
#[derive(Clone, Debug, Serialize)]
pub struct HostedRun {
    /// Number of the round, from 0.
    pub round: usize,
    /// The system's name.
    pub system: String,
    /// The place's name.
    pub place: String,
    /// The client's counts.
    #[serde(flatten)]
    pub client: ClientCounts,
    /// The measured figures: latencies at the client from the intended time, cores by the daemon's counters.
    pub live: HostedFigures,
    /// The figures of a simulated host with as many cores.
    pub simulated: HostedFigures,
}

impl MeasuredRun for HostedRun {
    fn round(&self) -> usize {
        self.round
    }

    fn at(&self) -> SystemAtPlace<'_> {
        SystemAtPlace {
            system: &self.system,
            place: Some(&self.place),
        }
    }

    /// Whether the client sent its requests in time.
    fn counts(&self) -> bool {
        !self.client.lag.is_late()
    }
}
