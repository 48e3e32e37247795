//! What a world showed.

/// What a world showed.
#[derive(Debug)]
pub struct WorldVerdict {
    /// The scenario, in a line.
    pub scenario: String,
    /// What did not hold, a line each.
    pub faults: Vec<String>,
    /// A number that differs where anything differed that happened.
    pub fingerprint: u64,
    /// How often one thread made way for another.
    pub turns: u64,
}
