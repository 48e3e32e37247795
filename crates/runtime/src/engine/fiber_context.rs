//! What the fibers of all threads share, made for a server.

use std::sync::Arc;

use headway_fiber::Stacks;
use headway_net::pool::SlotPool;

use super::parts::EngineParts;
use crate::error::StartError;
use crate::request::fibers::{FiberContext, MOST_IDLE};
use crate::request::overflow;
use crate::request::suspended::SuspendedRequests;
use crate::stats::overruns::Overruns;

/// Stacks that are there from the start, a page each: as many requests may be interrupted before one has to wait 10 µs for a mapping.
const READY_STACKS: usize = 256;

/// For the requests in the buffers of this pool; `heeds_length` says whether the engine goes by their saying that they are long.
///
/// # Errors
/// [`StartError`]: there are no stacks to be had, or nothing tells the time cheaply.
pub(crate) fn fiber_context(
    parts: &EngineParts,
    pool: &Arc<SlotPool>,
    overruns: &Arc<Overruns>,
    heeds_length: bool,
) -> Result<FiberContext, StartError> {
    let clock = parts.config.clock;
    if !clock.is_cheap() {
        return Err(StartError::NoTsc);
    }
    overflow::report(&parts.config.class_names);
    let bytes = parts.config.stack_bytes;
    let stacks = Stacks::new(bytes, READY_STACKS).and_then(|stacks| {
        // Each request may be on a stack of its own, and all may end.
        stacks.reserve(pool.len() + parts.shape.workers * MOST_IDLE)?;
        Ok(stacks)
    });
    let stacks = stacks.map_err(|source| StartError::Stacks { bytes, source })?;
    Ok(FiberContext {
        service: Arc::clone(&parts.service),
        stacks: Arc::new(stacks),
        suspended: Arc::new(SuspendedRequests::new(pool.len())),
        pool: Arc::clone(pool),
        resume: parts.shape.resume,
        mechanism: parts.config.mechanism,
        feedback: parts.config.feedback,
        heeds_length,
        overruns: Arc::clone(overruns),
        clock,
    })
}
