//! How long runs are: as the files say, or shorter.

/// How long the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// As the files say.
    Full,
    /// A tenth of it: enough for a first impression, not to judge tails.
    Fast,
    /// No run has more requests than this, and phases last a hundredth: whether everything works.
    AtMost(u64),
}

impl RunLength {
    /// So many requests, shortened.
    #[must_use]
    pub fn requests(self, full: u64) -> u64 {
        const LEAST: u64 = 20_000;
        match self {
            Self::Full => full,
            Self::Fast => (full / 10).max(LEAST).min(full),
            Self::AtMost(most) => full.min(most),
        }
    }

    /// So much virtual time, shortened.
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
