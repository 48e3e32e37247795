//! Overload: does a class's backlog grow without bound?
//!
//! A queue below saturation wanders and returns; one above it grows linearly with time. A run is cut
//! into batches of equal duration, and three questions are put to the second half of its backlog
//! series, where the filling of the initially empty system is over. Overload is declared only when
//! all three answers are yes:
//!
//! 1. *Is the drift more than chance?* The mean change from batch to batch is positive at the 99 %
//!    level, one-sided, by Student's t on the changes. Above saturation a backlog is a random walk
//!    with drift, whose changes are independent, so the test is exact there; a regression on the
//!    levels would not be, since those are correlated. Below saturation the changes cancel.
//! 2. *Is it a drift of the level itself?* The rise over the half is at least a third of the half's
//!    mean. A backlog that grew linearly from nothing rises by two thirds of it.
//! 3. *Is it large?* The last batch's backlog is at least `floor` requests, which the caller sets to
//!    what the system holds in passing (a few requests per worker).
//!
//! A queue so close to saturation that its relaxation time exceeds the run cannot be told from one
//! just above by any test; longer runs move that limit.

use super::interval::{StatsError, check_samples, mean_of};
use super::mean::mean_interval;

/// The fewest batches that a verdict can rest on.
const BATCHES_MIN: usize = 16;
/// Two-sided, so that each side is left out with a probability of 1 %.
const CONFIDENCE: f64 = 0.98;
const RISE_MIN: f64 = 1.0 / 3.0;

/// Why a backlog is, or is not, taken to grow without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthReason {
    /// It grows: the drift is significant, a large part of the level, and the level is large.
    Growing,
    /// The drift is not significantly positive.
    NoDrift,
    /// The rise is small against the level.
    SmallRise,
    /// The final level is below the floor.
    SmallBacklog,
}

/// The verdict on a backlog series, with the figures it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The verdict.
    pub reason: GrowthReason,
    /// Mean change over the second half, in requests per batch.
    pub drift: f64,
    /// The drift's one-sided 99 % lower bound.
    pub drift_lo: f64,
    /// Rise over the second half as a fraction of its mean; 0 for an empty queue.
    pub rise: f64,
    /// Backlog in the last batch.
    pub last: f64,
}

impl Growth {
    /// Whether the backlog grows without bound.
    pub fn is_growing(&self) -> bool {
        self.reason == GrowthReason::Growing
    }
}

impl std::fmt::Display for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self.reason {
            GrowthReason::Growing => "grows without bound",
            GrowthReason::NoDrift => "has no significant drift",
            GrowthReason::SmallRise => "rises little against its level",
            GrowthReason::SmallBacklog => "stays small",
        };
        let Self {
            drift,
            drift_lo,
            rise,
            last,
            ..
        } = self;
        write!(
            f,
            "backlog {verdict}: {drift:+.3} requests per batch (99 % bound {drift_lo:+.3}), \
             {:.0} % of its mean over the second half, {last:.1} at the end",
            100.0 * rise
        )
    }
}

/// Decides whether `backlog`, a class's mean number of requests in the system in successive batches
/// of equal duration while arrivals last, grows without bound (see the module's text for the test).
///
/// Mean latencies per batch of arrivals work as well, by Little's law, with a `floor` in their unit.
///
/// # Errors
///
/// Fewer than 16 batches, or a value that is not finite.
///
/// # Examples
///
/// ```
/// use headway_report::stats::backlog_growth;
///
/// let overloaded: Vec<f64> = (0..40).map(|batch| 25.0 * f64::from(batch)).collect();
/// assert!(backlog_growth(&overloaded, 32.0).unwrap().is_growing());
/// ```
pub fn backlog_growth(backlog: &[f64], floor: f64) -> Result<Growth, StatsError> {
    check_samples("a backlog's trend", backlog, BATCHES_MIN)?;
    let half = &backlog[backlog.len() / 2..];
    let changes: Vec<f64> = half.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let drift = mean_interval(&changes, CONFIDENCE)?;
    let (first, last) = (half[0], half[half.len() - 1]);
    let rise = (last - first) / mean_of(half).max(f64::MIN_POSITIVE);
    let reason = if drift.lo <= 0.0 {
        GrowthReason::NoDrift
    } else if rise < RISE_MIN {
        GrowthReason::SmallRise
    } else if last < floor {
        GrowthReason::SmallBacklog
    } else {
        GrowthReason::Growing
    };
    Ok(Growth {
        reason,
        drift: drift.estimate,
        drift_lo: drift.lo,
        rise,
        last,
    })
}
