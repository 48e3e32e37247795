//! The rate that a system carries within a slowdown, and its ratio to another system's: in each round, then over rounds.

use headway_report::stats::{ConfidenceInterval, ratio_interval};
use serde::Serialize;

/// Confidence of every interval over rounds.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// A load step of one round: the result of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundStep {
    /// Offered rate, requests per second.
    pub(crate) rps: f64,
    /// The tail's slowdown.
    pub(crate) slowdown: f64,
    /// Whether no more than 0.1 % of the requests were shed, failed or lost.
    pub(crate) sustained: bool,
}

/// The rate up to which a system keeps a slowdown, or a bound of it, requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "bound", content = "rps", rename_all = "kebab-case")]
pub enum CarriedRate {
    /// Even the lowest step exceeds the slowdown: the rate is below it.
    Below(f64),
    /// The rate, interpolated between two steps.
    At(f64),
    /// Even the highest step keeps the slowdown: the rate is at least this.
    AtLeast(f64),
}

impl CarriedRate {
    /// Computes the rate from steps in ascending order, up to the first step that misses the slowdown. Between this step and the last one
    /// that keeps it, the logarithm of the slowdown is taken to grow in proportion to the rate. If the first missing step lost requests,
    /// the rate of the last step before it counts. None without a step.
    pub(crate) fn of(steps: &[RoundStep], slo: f64) -> Option<Self> {
        let Some(first) = steps
            .iter()
            .position(|step| !(step.sustained && step.slowdown <= slo))
        else {
            return steps.last().map(|step| Self::AtLeast(step.rps));
        };
        let Some(last) = first.checked_sub(1) else {
            return Some(Self::Below(steps[0].rps));
        };
        let (kept, missed) = (steps[last], steps[first]);
        let way = if missed.sustained {
            (slo / kept.slowdown).ln() / (missed.slowdown / kept.slowdown).ln()
        } else {
            0.0
        };
        Some(Self::At(kept.rps + way * (missed.rps - kept.rps)))
    }

    /// The rate or its bound.
    #[must_use]
    pub fn rps(self) -> f64 {
        match self {
            Self::Below(rps) | Self::At(rps) | Self::AtLeast(rps) => rps,
        }
    }

    fn least(self) -> f64 {
        match self {
            Self::Below(_) => 0.0,
            Self::At(rps) | Self::AtLeast(rps) => rps,
        }
    }

    fn most(self) -> f64 {
        match self {
            Self::Below(rps) | Self::At(rps) => rps,
            Self::AtLeast(_) => f64::INFINITY,
        }
    }
}

/// The ratio of two systems' rates over rounds: between `lo` and `hi` with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean; none if a round has only a bound.
    pub estimate: Option<f64>,
    /// Lower end of the interval; 0 if unknown.
    pub lo: f64,
    /// Upper end of the interval; none if unknown.
    pub hi: Option<f64>,
    /// Number of rounds.
    pub rounds: usize,
}

impl Ratio {
    /// Computes the ratio from one pair for each round. An interval needs two rounds; with fewer, both ends are unknown.
    pub(crate) fn of(pairs: &[(CarriedRate, CarriedRate)]) -> Self {
        let least: Vec<_> = pairs
            .iter()
            .map(|(of, over)| (of.least(), over.most()))
            .collect();
        let most: Vec<_> = pairs
            .iter()
            .map(|(of, over)| (of.most(), over.least()))
            .collect();
        let (least, most) = (interval(&least), interval(&most));
        let estimate = match (least, most) {
            (Some(least), Some(most)) if least == most => Some(least.estimate),
            _ => None,
        };
        Self {
            estimate,
            lo: least.map_or(0.0, |least| least.lo),
            hi: most.map(|most| most.hi),
            rounds: pairs.len(),
        }
    }

    /// Whether the interval holds `value`.
    pub(crate) fn allows(&self, value: f64) -> bool {
        self.lo <= value && self.hi.is_none_or(|hi| value <= hi)
    }
}

/// None with fewer than two pairs, or with an unknown bound among them.
fn interval(pairs: &[(f64, f64)]) -> Option<ConfidenceInterval> {
    ratio_interval(pairs, CONFIDENCE).ok()
}

#[cfg(test)]
mod tests {
    use super::CarriedRate::{At, AtLeast, Below};
    use super::*;

    const SLO: f64 = 50.0;

    fn carried(slowdowns: &[f64]) -> CarriedRate {
        let steps: Vec<RoundStep> = slowdowns
            .iter()
            .enumerate()
            .map(|(index, &slowdown)| RoundStep {
                rps: 100.0 * (index as f64 + 1.0),
                slowdown,
                sustained: true,
            })
            .collect();
        CarriedRate::of(&steps, SLO).unwrap()
    }

    #[test]
    fn the_first_step_that_misses_ends_it() {
        assert_eq!(carried(&[60.0, 2.0]), Below(100.0));
        assert_eq!(carried(&[2.0, 3.0, 50.0]), AtLeast(300.0));
        // 50 is half-way between 5 and 500 by its logarithm.
        let half = carried(&[2.0, 5.0, 500.0, 2.0]);
        assert!(
            matches!(half, At(rps) if (rps - 250.0).abs() < 1e-9),
            "{half:?}"
        );
        assert_eq!(CarriedRate::of(&[], SLO), None);
    }

    #[test]
    fn requests_turned_away_miss_whatever_the_others_took() {
        let step = |rps, sustained| RoundStep {
            rps,
            slowdown: 2.0,
            sustained,
        };
        let steps = [step(100.0, true), step(200.0, false)];
        assert_eq!(CarriedRate::of(&steps, SLO), Some(At(100.0)));
        assert_eq!(CarriedRate::of(&steps[1..], SLO), Some(Below(200.0)));
    }

    #[test]
    fn a_ratio_is_the_geometric_mean_with_its_interval() {
        let pairs = [
            (At(200.0), At(100.0)),
            (At(220.0), At(100.0)),
            (At(180.0), At(100.0)),
        ];
        let ratio = Ratio::of(&pairs);
        let estimate = ratio.estimate.unwrap();
        assert!((1.9..2.0).contains(&estimate), "{ratio:?}");
        assert!(
            ratio.allows(estimate) && ratio.allows(2.2) && !ratio.allows(1.0),
            "{ratio:?}"
        );
    }

    #[test]
    fn a_bound_on_one_side_bounds_the_ratio_on_that_side_only() {
        let over_nothing = Ratio::of(&[(At(200.0), Below(100.0)), (At(210.0), Below(100.0))]);
        assert_eq!((over_nothing.estimate, over_nothing.hi), (None, None));
        assert!(
            !over_nothing.allows(1.0) && over_nothing.allows(100.0),
            "{over_nothing:?}"
        );
        let of_nothing = Ratio::of(&[(Below(100.0), At(200.0)), (Below(100.0), At(210.0))]);
        assert!(
            !of_nothing.allows(1.0) && of_nothing.allows(0.01),
            "{of_nothing:?}"
        );
        let neither = Ratio::of(&[(Below(100.0), Below(100.0)), (At(200.0), At(100.0))]);
        assert!(neither.allows(1.0) && neither.allows(1e6), "{neither:?}");
    }

    #[test]
    fn one_round_tells_nothing() {
        let one = Ratio::of(&[(At(300.0), At(100.0))]);
        assert!(one.allows(1.0) && one.allows(3.0) && one.estimate.is_none());
    }
}
