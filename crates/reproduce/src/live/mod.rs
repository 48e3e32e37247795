//! A figure of a paper measured on this machine: a real client loads a real server, each system in turn.
//!
//! It is a file of `experiments/live/` and no part of `all`, since the result depends on the machine. The comparison (`claim`) and
//! the rule for rounds that count (`rounds`) are fixed before the measurement. Slowdowns are those at the server, as in the papers:
//! each latency, less the network's time at rest, is divided by the handler's time at rest, compiled without probes.

mod carried;
mod claim;
mod closed_loop;
mod experiment;
mod requests;
mod result;
mod rounds;
mod server;
mod session;
mod show;
mod tail;

use std::ops::ControlFlow;

pub use carried::{CarriedRate, Ratio};
pub use claim::{LiveClaim, LiveJudged};
pub use closed_loop::ClosedLoopError;
pub use experiment::{Compiled, LiveExperiment, LiveSystem, Programs};
pub use requests::{RequestClass, UniformKey};
pub use result::{CarriedRates, LiveReproduction, SystemResult};
pub use rounds::{AtServer, LeftOut, LiveRun};
pub use server::ServerError;
pub use session::{AtRest, LiveError, LiveSettings};
pub use tail::Tail;

use session::LiveSession;

/// Runs the measurement. On the calling thread, `progress` gets the finished runs, all runs, and the next run's system, and says whether it goes on: if not, the
/// result is of the rounds that were complete, `None` without one.
///
/// # Errors
/// The server's program is missing, no system can run, or a system fails after its first run.
pub fn measure(
    experiment: &LiveExperiment,
    settings: &LiveSettings,
    progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Option<LiveReproduction>, LiveError> {
    let measured = LiveSession::new(experiment, settings).measure(progress)?;
    Ok(measured.map(|measured| LiveReproduction::new(experiment, settings, measured)))
}
