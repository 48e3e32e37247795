//! Length of the runs: full, or shortened.

/// Length of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// The lengths in the files.
    Full,
    /// A tenth of the full length: enough for a first impression, too short to judge tails.
    Fast,
    /// At most this many requests a run, and a hundredth of each phase: enough to check that everything works.
    AtMost(u64),
}

impl RunLength {
    /// The number of requests of a run that has `full` requests at full length.
    #[must_use]
    pub fn requests(self, full: u64) -> u64 {
        const LEAST: u64 = 20_000;
        match self {
            Self::Full => full,
            Self::Fast => (full / 10).max(LEAST).min(full),
            Self::AtMost(most) => full.min(most),
        }
    }

    /// The virtual time of a run that lasts `full` at full length.
    #[must_use]
    pub fn duration_ns(self, full: u64) -> u64 {
        let divisor = match self {
            Self::Full => 1,
            Self::Fast => 10,
            Self::AtMost(_) => 100,
        };
        (full / divisor).max(1)
    }
}
