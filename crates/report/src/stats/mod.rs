//! Statistics that decide: confidence intervals, comparisons, and whether a queue is stable.
//!
//! Every interval states its confidence, and none is returned when the samples cannot support it.
//! References: Law, *Simulation Modeling and Analysis* (5th ed.), chapters 9 and 10; Hahn and
//! Meeker, *Statistical Intervals*, section 5.2.

mod adjusted;
mod batch;
mod interval;
mod mean;
mod order;
mod stationarity;

pub use adjusted::{ADJUSTED_ROUNDS_MIN, BurdenedPair, adjusted_ratio_interval};
pub use batch::{BatchMeans, batch_means, lag1_autocorrelation};
pub use interval::{ConfidenceInterval, StatsError};
pub use mean::{difference_interval, mean_interval, ratio_interval, t_quantile};
pub use order::{percentile_interval, percentile_ranks};
pub use stationarity::{Growth, GrowthReason, backlog_growth};

#[cfg(test)]
mod tests;
