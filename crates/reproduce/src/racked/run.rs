//! One run of one system, as the client and the simulator saw it.

use headway_report::Histogram;
use serde::{Deserialize, Serialize};

use crate::live::Lag;

/// A part of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum During {
    /// From its beginning on, while the rack follows.
    Change,
    /// The rest of it.
    Settled,
}

impl During {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Change, Self::Settled];

    /// As tables say it.
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
    /// Of the phases, from 1.
    pub phase: usize,
    /// Which part of it.
    pub during: During,
    /// The class.
    pub class: String,
    /// 99th percentile of the latencies of what was to be sent then, ms; not a number without any.
    pub p99_ms: f64,
}

impl RackedTail {
    pub(super) fn new(phase: usize, during: During, class: &str, latency_ns: &Histogram) -> Self {
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
    /// Which round, from 0.
    pub round: usize,
    /// The system's name.
    pub system: String,
    /// How late requests left the client; a run in which too many were late does not count.
    pub lag: Lag,
    /// Requests sent.
    pub sent: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// Requests that a server or the switch turned away.
    pub shed: u64,
    /// Tails at the client, from the intended send.
    pub live: Vec<RackedTail>,
    /// The same of the simulation.
    pub simulated: Vec<RackedTail>,
}

impl RackedRun {
    /// Whether the client sent in time.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.lag.is_late()
    }
}

/// The tail of that class then, ms.
pub(super) fn p99_ms(tails: &[RackedTail], phase: usize, during: During, class: &str) -> f64 {
    tails
        .iter()
        .find(|tail| (tail.phase, tail.during) == (phase, during) && tail.class == class)
        .map_or(f64::NAN, |tail| tail.p99_ms)
}
