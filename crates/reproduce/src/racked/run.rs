//! One run of one system: the tails of client and simulator.

use headway_report::Histogram;
use serde::{Deserialize, Serialize};

use crate::measured::{ClientCounts, MeasuredRun, SystemAtPlace};

/// A part of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PhasePart {
    /// The first part, in which the rack adapts.
    Change,
    /// The rest of it.
    Settled,
}

impl PhasePart {
    /// Both parts.
    pub const BOTH: [Self; 2] = [Self::Change, Self::Settled];

    /// The name in tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Settled => "settled",
        }
    }
}

/// A class's tail in a part of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RackedTail {
    /// Number of the phase, from 1.
    pub phase: usize,
    /// The part of the phase.
    pub during: PhasePart,
    /// The class.
    pub class: String,
    /// 99th percentile of the latencies of requests due in that part, ms; not a number without requests.
    pub p99_ms: f64,
}

impl RackedTail {
    pub(super) fn new(
        phase: usize,
        during: PhasePart,
        class: &str,
        latency_ns: &Histogram,
    ) -> Self {
        let p99_ns = latency_ns.quantile(0.99);
        Self {
            phase,
            during,
            class: class.into(),
            p99_ms: p99_ns.map_or(f64::NAN, |ns| ns as f64 / 1e6),
        }
    }
}

/// One system in one round.
#[derive(Clone, Debug, Serialize)]
pub struct RackedRun {
    /// Number of the round, from 0.
    pub round: usize,
    /// The system's name.
    pub system: String,
    /// The client's counts.
    #[serde(flatten)]
    pub client: ClientCounts,
    /// Tails at the client, from the intended time.
    pub live: Vec<RackedTail>,
    /// Tails of the simulation.
    pub simulated: Vec<RackedTail>,
}

impl MeasuredRun for RackedRun {
    fn round(&self) -> usize {
        self.round
    }

    fn at(&self) -> SystemAtPlace<'_> {
        SystemAtPlace::anywhere(&self.system)
    }

    /// Whether the client sent its requests in time.
    fn counts(&self) -> bool {
        !self.client.lag.is_late()
    }
}

/// The tail of a class in a part of a phase, ms.
pub(super) fn p99_ms(tails: &[RackedTail], phase: usize, during: PhasePart, class: &str) -> f64 {
    tails
        .iter()
        .find(|tail| (tail.phase, tail.during) == (phase, during) && tail.class == class)
        .map_or(f64::NAN, |tail| tail.p99_ms)
}
