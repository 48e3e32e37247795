//! What a program brings: a loop.

use std::io;
use std::sync::Arc;

use headway_fiber::Stacks;
use headway_policy::WorkerId;

use super::requests::Requests;
use crate::error::SetupFailure;

/// Serves requests in a loop of its own; closures that take [`&Requests`](Requests) do.
///
/// ```
/// use headway_runtime::{Requests, Server};
///
/// let server = Server::builder()
///     .pull(|requests: &Requests| {
///         let mut served = 0_u64; // The loop's own state.
///         while let Some(request) = requests.recv() {
///             served += 1;
///             request.reply(&served.to_be_bytes());
///         }
///     })
///     .listen_udp("127.0.0.1:0".parse().unwrap())
///     .start()?;
/// # drop(server);
/// # Ok::<(), headway_runtime::StartError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no loop that takes requests",
    label = "not a `PullService`",
    note = "a closure is one if it takes `&Requests`, and is `Send + Sync + 'static`: `.pull(|requests: &Requests| …)`"
)]
pub trait PullService: Send + Sync + 'static {
    /// Takes and answers requests until [`Requests::recv`] has none while the loop holds none: then the server has ended. Called once by each worker before the server
    /// counts on it, and again for each request that begins while all loops of its worker are in the middle of others. A loop that returns or
    /// panics earlier fails the requests that it holds, and is called anew for the next.
    fn serve(&self, requests: &Requests);

    /// As [`Service::setup_worker`](crate::Service::setup_worker), before the worker's first loop.
    ///
    /// # Errors
    /// Whatever keeps it from being ready; the server does not start then.
    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        let _ = (worker, core);
        Ok(())
    }
}

impl<F> PullService for F
where
    F: Fn(&Requests) + Send + Sync + 'static,
{
    fn serve(&self, requests: &Requests) {
        self(requests);
    }
}

/// Answers requests by the loops of a [`PullService`]; what [`Builder::pull`](crate::Builder::pull) makes of one.
#[derive(Debug)]
pub struct Pull<P> {
    /// Lives as long as the last loop that uses it.
    pub(super) program: Arc<P>,
    /// Without memory for stacks no worker can be set up.
    pub(super) stacks: io::Result<Stacks>,
    pub(super) most_held: usize,
}

impl<P: PullService> Pull<P> {
    /// Requests that a loop may hold at once, unless chosen otherwise.
    pub const MOST_HELD: usize = 16;

    /// Bytes of a loop's stack, unless chosen otherwise.
    pub const STACK_BYTES: usize = 256 << 10;

    /// Loops that hold up to 16 requests at once, on stacks of 256 KiB.
    #[must_use]
    pub fn new(program: P) -> Self {
        Self::with(program, Self::MOST_HELD, Self::STACK_BYTES)
    }

    /// Loops that hold up to `most_held` requests at once, at least 1, on stacks of so many bytes, of which only those that are touched take memory. Less than
    /// [`MIN_STACK_BYTES`](headway_fiber::MIN_STACK_BYTES) is rounded up. A server for which there is no memory does not start.
    #[must_use]
    pub fn with(program: P, most_held: usize, stack_bytes: usize) -> Self {
        Self {
            program: Arc::new(program),
            stacks: Stacks::new(stack_bytes, 1),
            most_held: most_held.max(1),
        }
    }
}
