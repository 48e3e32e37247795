//! A figure of a paper measured on this machine without a network: the real server, each system in turn, on replayed arrivals, and the
//! simulation of the same arrivals beside it.
//!
//! It is a file of `experiments/replayed/` and no part of `all`: what comes of it depends on the machine. Systems, loads, rounds and claims
//! are written down before. A figure is of the requests that the machine left alone ([`Comparison`](headway_bench::compare::Comparison)),
//! which are decided without a look at latencies, and the simulated one is of the same requests.

mod claim;
mod experiment;
mod figure;
mod measure;
mod result;
mod run;
pub mod show;

pub use claim::{ReplayedClaim, ReplayedJudged};
pub use experiment::{
    REPLAYED_NAMES, ReplayedExperiment, ReplayedExtent, ReplayedSetup, ReplayedSystem,
};
pub use figure::RunFigure;
pub use measure::{ReplayedError, ReplayedSettings};
pub use result::{Point, ReplayedReproduction};
pub use run::{ReplayedRun, Side};

/// Measures it. `progress` hears, on the calling thread, how many steps are done of how many, and what the next one is.
///
/// # Errors
/// A system cannot run, or the machine has too few cores.
pub fn measure(
    experiment: &ReplayedExperiment,
    settings: &ReplayedSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<ReplayedReproduction, ReplayedError> {
    let runs = measure::ReplayedSession::new(experiment, settings)?.measure(progress)?;
    Ok(ReplayedReproduction::new(experiment, settings, runs))
}
