//! The extents of a measurement: its loads, rounds and run lengths, full or shortened.

use serde::Deserialize;
use std::time::Duration;

/// An extent of a measurement.
pub trait MeasuredExtent {
    /// Number of rounds, at least 2.
    fn rounds(&self) -> usize;

    /// Checks that the rounds give an interval, and that all runs have loads and lengths.
    ///
    /// # Errors
    /// The problem.
    fn check(&self) -> Result<(), String>;
}

/// Rounds of a measurement.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundsExtent {
    /// Runs of each system, at each place if there are any, at least 2.
    pub rounds: usize,
}

impl MeasuredExtent for RoundsExtent {
    fn rounds(&self) -> usize {
        self.rounds
    }

    fn check(&self) -> Result<(), String> {
        if self.rounds < 2 {
            return Err("an interval needs two `rounds`".into());
        }
        Ok(())
    }
}

/// Loads, rounds and run lengths of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadsExtent {
    /// Offered loads, ascending, above 0.
    pub loads: Vec<f64>,
    /// Runs of each system at each load, at least 2.
    pub rounds: usize,
    /// Time that requests arrive in a run, ms.
    pub run_ms: u64,
}

impl LoadsExtent {
    /// Time that requests arrive in a run.
    pub(crate) fn run(&self) -> Duration {
        Duration::from_millis(self.run_ms)
    }
}

impl MeasuredExtent for LoadsExtent {
    fn rounds(&self) -> usize {
        self.rounds
    }

    fn check(&self) -> Result<(), String> {
        let ascending = self.loads.windows(2).all(|pair| pair[0] < pair[1]);
        if self.loads.first().is_none_or(|&first| first <= 0.0) || !ascending {
            return Err("`loads` must be above 0 and ascend".into());
        }
        if self.rounds < 2 || self.run_ms == 0 {
            return Err("an interval needs two `rounds`, and `run_ms` above 0".into());
        }
        Ok(())
    }
}
