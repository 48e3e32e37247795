//! How many requests the figures of an SLO rest on.

use std::fmt;

use super::bound::{Bound, Scope, Statistic};
use crate::format::significant;
use crate::run::Run;

/// Fewest requests at or beyond a percentile for a figure that a run of another seed repeats.
pub const ENOUGH_SAMPLES: f64 = 10.0;

/// A figure that rests on few requests.
#[derive(Clone, Debug, PartialEq)]
pub struct FewSamples {
    /// The requests that the figure is of.
    pub scope: Scope,
    /// Its statistic.
    pub statistic: Statistic,
    /// The number of them that it rests on: at or beyond a percentile, of a mean or a maximum all.
    pub requests: f64,
}

impl FewSamples {
    /// Whether not even one request is expected beyond the percentile: then the largest of the run stands for it, and shows nothing.
    pub fn is_nothing(&self) -> bool {
        // 0.001 of a thousand requests is one.
        self.requests < 1.0 - 1e-9
    }
}

impl fmt::Display for FewSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope,
            statistic,
            requests,
        } = self;
        let requests = significant(*requests, 2);
        write!(f, "{statistic} of {scope} rests on {requests} requests")
    }
}

impl Statistic {
    /// The part of the requests that lies at or beyond it.
    fn beyond(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P90 => 0.1,
            Self::P99 => 0.01,
            Self::P999 => 0.001,
            Self::Mean | Self::Max => 1.0,
        }
    }
}

impl Bound {
    /// What each of its values in a run rests on.
    #[must_use]
    pub fn samples(&self, run: &Run) -> Vec<FewSamples> {
        let all: u64 = run.classes.iter().map(|class| class.count).sum();
        let count = |scope: &Scope| match scope {
            Scope::Class(name) => run.class(name).map_or(0, |class| class.count),
            Scope::Overall | Scope::EveryClass => all,
        };
        self.values(run)
            .into_iter()
            .map(|(scope, _)| FewSamples {
                requests: count(&scope) as f64 * self.statistic.beyond(),
                statistic: self.statistic,
                scope,
            })
            .collect()
    }
}
