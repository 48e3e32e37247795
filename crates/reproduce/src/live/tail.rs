//! The percentile of the slowdowns to which a bound applies.

use headway_report::Summary;
use serde::{Deserialize, Serialize};

/// A percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// The median.
    P50,
    /// The 90th.
    P90,
    /// The 99th.
    P99,
    /// The 99.9th, which the papers print.
    P999,
}

impl Tail {
    /// The percentile in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// The part of the requests that lies at or beyond it.
    pub(crate) fn beyond(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P90 => 0.1,
            Self::P99 => 0.01,
            Self::P999 => 0.001,
        }
    }

    pub(crate) fn of(self, summary: &Summary) -> f64 {
        match self {
            Self::P50 => summary.p50,
            Self::P90 => summary.p90,
            Self::P99 => summary.p99,
            Self::P999 => summary.p999,
        }
    }
}
