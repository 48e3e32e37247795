//! A figure of a paper measured on this machine: a real server, each system in turn, under the load of a real client.
//!
//! It is a file of `experiments/live/` and no part of `all`: what comes of it depends on the machine. What is compared, and which
//! rounds count, is written down before (`rounds`, `claim`); slowdowns are those at the server, as the papers' are: what the network
//! takes at rest is taken off each latency, and the rest is divided by what the handler takes at rest, compiled without probes.

mod asked;
mod carried;
mod claim;
mod closed;
mod experiment;
mod result;
mod rounds;
mod server;
mod session;
pub mod show;
mod tail;

pub use asked::{AskedClass, UniformKey};
pub use carried::{Carried, Ratio};
pub use claim::{LiveClaim, LiveJudged, LiveVerdict};
pub use closed::ClosedError;
pub use experiment::{Compiled, LIVE_NAMES, LiveExperiment, LiveExtent, LiveSystem, Programs};
pub use result::{CarriedBy, LiveReproduction, SystemResult};
pub use rounds::{AtServer, Lag, LeftOut, LiveRun};
pub use server::ServerError;
pub use session::{AtRest, LiveError, LiveSettings};
pub use tail::Tail;

pub(crate) use result::median;
pub(crate) use rounds::{PlannedRun, planned_runs};
use session::LiveSession;

/// Measures it. `progress` hears, on the calling thread, how many runs are done of how many, and of whom the next one is.
///
/// # Errors
/// When there is no server, none of the systems can be run, or one fails that had run before.
pub fn measure(
    experiment: &LiveExperiment,
    settings: &LiveSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<LiveReproduction, LiveError> {
    let measured = LiveSession::new(experiment, settings).measure(progress)?;
    Ok(LiveReproduction::new(experiment, settings, measured))
}
