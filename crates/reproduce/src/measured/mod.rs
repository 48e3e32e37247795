//! What the figures that are measured on this machine share: expectations and verdicts, and the rounds of their runs.

pub(crate) mod expectation;
pub(crate) mod rounds;
mod verdict;

pub use expectation::Expectation;
pub use rounds::Lag;
pub use verdict::MeasuredVerdict;
