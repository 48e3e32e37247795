//! How often the cores of a program are told to the kernel.

/// The pace at which a host names the cores of its programs. The kernel walks over all threads of a program at each change, so that a program of many
/// threads whose cores come and go would cost a core. The cores change hands without it: programs have only the idle time of theirs.
#[derive(Clone, Copy, Debug)]
pub struct ConfinePace;

impl ConfinePace {
    /// The part of a core that the changes may take together: one in so many.
    const PART: u64 = 10;

    /// How long a core must be gone before the kernel is told, ns. Most are back within a request.
    pub const NARROWS_AFTER_NS: u64 = 2_000_000;

    /// Whether cores that are gone for so long, ns, are taken from the program.
    #[must_use]
    pub fn narrows(gone_ns: u64) -> bool {
        gone_ns >= Self::NARROWS_AFTER_NS
    }

    /// The pause after changes that took `took_ns`, ns.
    #[must_use]
    pub fn rest_ns(took_ns: u64) -> u64 {
        took_ns.saturating_mul(Self::PART - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_take_a_tenth_of_a_core_at_most() {
        let busy_ns = 1_000;
        assert_eq!(busy_ns * 10, busy_ns + ConfinePace::rest_ns(busy_ns));
        assert_eq!(ConfinePace::rest_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_core_that_is_soon_back_stays_named() {
        assert!(!ConfinePace::narrows(ConfinePace::NARROWS_AFTER_NS - 1));
        assert!(ConfinePace::narrows(ConfinePace::NARROWS_AFTER_NS));
    }
}
