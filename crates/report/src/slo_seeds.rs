//! How many runs of different seeds meet an SLO.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of runs of one experiment that meet an SLO, each run under another seed.
///
/// One run's tail can be chance, more so near saturation. Runs that disagree show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SloSeeds {
    /// All runs that were judged.
    pub runs: u64,
    /// The runs of them that meet the SLO.
    pub met: u64,
}

impl SloSeeds {
    /// Whether the verdict is the same under every seed.
    #[must_use]
    pub fn agree(self) -> bool {
        self.met == 0 || self.met == self.runs
    }
}

impl fmt::Display for SloSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} seeds", self.met, self.runs)
    }
}
