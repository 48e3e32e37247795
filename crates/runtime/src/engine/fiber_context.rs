//! What the fibers of all threads share, made for a server.

use std::io;
use std::sync::Arc;

use headway_fiber::Stacks;
use headway_net::pool::SlotPool;

use super::parts::EngineParts;
use crate::error::StartError;
use crate::request::idle_fibers::MOST_IDLE;
use crate::request::overflow;
use crate::request::rescue::Rescue;
use crate::request::sayers::Sayers;
use crate::request::shared_fibers::FiberContext;
use crate::request::suspended::SuspendedRequests;
use crate::stats::overruns::Overruns;

/// Stacks that are there from the start, a page each: as many requests may be interrupted before one has to wait 10 µs for a mapping.
const READY_STACKS: usize = 256;

/// Threads that are there from the start to lend requests their state: making one takes some 30 µs.
const READY_DONORS: usize = 16;

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
    let stacks_of = |make: fn(usize, usize) -> io::Result<Stacks>, ready, most| {
        let stacks = make(bytes, ready).and_then(|stacks| {
            let stacks = stacks.at_most(most);
            // Each request may be on a stack of its own, and all may end.
            stacks.reserve(pool.len() + parts.shape.workers * MOST_IDLE)?;
            Ok(Arc::new(stacks))
        });
        stacks.map_err(|source| StartError::Stacks { bytes, source })
    };
    // Here it is decided what a request has that may be interrupted: a thread's state, unless nobody needs one.
    let is_plain = parts.config.plain_fibers || parts.service.has_own_stacks();
    let most = parts.config.most_lent_threads;
    let donors = if is_plain {
        None
    } else {
        // At the limit of threads the server starts, and says for each request that it had none.
        let ready = stacks_of(Stacks::of_donors, READY_DONORS.min(most), most);
        Some(ready.or_else(|_| stacks_of(Stacks::of_donors, 0, most))?)
    };
    Ok(FiberContext {
        service: Arc::clone(&parts.service),
        stacks: stacks_of(
            Stacks::new,
            if is_plain { READY_STACKS } else { 0 },
            usize::MAX,
        )?,
        donors,
        rescue: Arc::new(Rescue::new(parts.shape.queues())),
        sayers: Arc::new(Sayers::new(
            parts.shape.queues(),
            heeds_length || parts.config.feedback,
        )),
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
