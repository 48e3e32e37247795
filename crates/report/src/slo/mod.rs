//! Service-level objectives: bounds on a measure, written as text and checked against a run.

mod bound;
mod objective;
mod parse;
mod samples;
mod seeds;
mod verdict;

pub use bound::{Bound, Measure, Scope, Statistic};
pub use objective::Slo;
pub use parse::SloError;
pub use samples::{ENOUGH_SAMPLES, FewSamples};
pub use verdict::{Loss, Verdict, Violation};

#[cfg(test)]
mod tests;
