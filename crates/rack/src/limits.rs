//! The sizes that a switch is built with.

/// The sizes of a switch's tables, and the time limit for answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchLimits {
    /// Declared types: the type bytes 0 to `types` − 1.
    pub types: usize,
    /// Other type bytes that become types as they show up. Further ones are UNKNOWN.
    pub undeclared: usize,
    /// Room for 2^`nat_bits` requests under way, 1 to 24.
    pub nat_bits: u32,
    /// The most requests that the switch holds, the same number that its policy was built with; each takes 2000 bytes.
    pub held: usize,
    /// The time after which the switch forgets an unanswered request, ns.
    pub answer_ns: u64,
    /// What the indices on the servers' side follow from: random, so that nobody guesses one, and no answer to an earlier switch fits.
    pub index_seed: u64,
}

impl SwitchLimits {
    /// Limits for exactly `types` types: 65 536 requests under way, none held, and 5 s for an answer. The header's execution time ends
    /// below that, at 4.29 s. The seed of the indices is the system's.
    ///
    /// # Panics
    /// When the system gives no random numbers.
    #[must_use]
    pub fn new(types: usize) -> Self {
        Self {
            types,
            undeclared: 0,
            nat_bits: 16,
            held: 0,
            answer_ns: 5_000_000_000,
            index_seed: getrandom::u64().expect("the system gives random numbers"),
        }
    }
}
