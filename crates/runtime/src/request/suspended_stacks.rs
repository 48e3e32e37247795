//! Where suspended requests stand, for who watches a server: nobody waits for it, and no request is slower.
#![expect(
    unsafe_code,
    reason = "reads a request that may go on at any moment, by the kernel's copy of it"
)]

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use headway_fiber::{StackCopy, read_own_memory};
use headway_machine::Clock;

use super::rescue::Rescue;
use super::suspended::{RequestPlace, Suspended, SuspendedRequests};

/// A request that is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendedRequest {
    /// The number of its buffer, which it keeps to its end.
    pub request: usize,
    /// The index of its class.
    pub class: usize,
    /// The worker that began it.
    pub worker: usize,
    /// For how long it has been suspended, ns.
    pub suspended_ns: u64,
    /// For how long it has run, ns.
    pub ran_ns: u64,
}

/// A server's suspended requests, as any thread sees them.
#[derive(Clone)]
pub(crate) struct SuspendedStacks {
    pub(crate) requests: Arc<SuspendedRequests>,
    pub(crate) rescue: Arc<Rescue>,
    pub(crate) clock: Clock,
}

/// What identifies a request in its place, and one suspension of it among others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SeenRequest {
    fiber: NonNull<()>,
    owns_thread_state: bool,
    class: u16,
    worker: usize,
    arrived_ns: u64,
    attained_ns: u64,
    stopped_ns: u64,
}

impl SuspendedStacks {
    /// Tells each request that is suspended now, with its stack. Returns how many go on in their own threads instead.
    ///
    /// # Errors
    /// As [`StackCopy::take`].
    pub(crate) fn each(
        &self,
        mut tell: impl FnMut(SuspendedRequest, &StackCopy),
    ) -> io::Result<usize> {
        let mut copy = StackCopy::new();
        let mut at_home = 0;
        for (request, place) in self.requests.places().iter().enumerate() {
            if place.holder.went_home() {
                at_home += 1;
            } else if let Some(seen) = self.copy(place, &mut copy)? {
                let since = self.clock.now_ns().saturating_sub(seen.stopped_ns);
                let told = SuspendedRequest {
                    request,
                    class: seen.class.into(),
                    worker: seen.worker,
                    suspended_ns: since,
                    ran_ns: seen.attained_ns,
                };
                tell(told, &copy);
            }
        }
        Ok(at_home)
    }

    /// The request in this place, if it was suspended while its stack was copied.
    fn copy(&self, place: &RequestPlace, copy: &mut StackCopy) -> io::Result<Option<SeenRequest>> {
        let Some(seen) = SeenRequest::in_place(place)? else {
            return Ok(None);
        };
        let fiber = seen.fiber;
        let is_copied = if seen.owns_thread_state {
            copy.take(fiber, || place.holder.is_nobodys())?
        } else {
            // Its worker says that it runs it before it does.
            copy.take(fiber, || self.rescue.no_worker_runs(fiber))?
        };
        let is_the_same = is_copied && SeenRequest::in_place(place)? == Some(seen);
        Ok(is_the_same.then_some(seen))
    }
}

impl SeenRequest {
    /// What lies in the place now.
    fn in_place(place: &RequestPlace) -> io::Result<Option<Self>> {
        let mut bytes = MaybeUninit::<Option<Suspended>>::zeroed();
        // SAFETY: as many bytes as it has, all of them written.
        let to = unsafe {
            slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<u8>(), size_of_val(&bytes))
        };
        if !read_own_memory(place.request.get() as usize, to)? {
            return Ok(None);
        }
        // SAFETY: a copy of what lies there, whole or a mixture. Any bytes are a value of each of its fields but the fiber's address, of which none is the value that says that nothing is there (`suspended.rs` has that checked). It is not dropped.
        let seen = unsafe { ManuallyDrop::new(bytes.assume_init()) };
        Ok(seen.as_ref().map(|request| Self {
            fiber: request.fiber.address(),
            owns_thread_state: request.owns_thread_state.is_set(),
            class: request.class,
            worker: request.worker.index(),
            arrived_ns: request.arrived_ns,
            attained_ns: request.attained_ns,
            stopped_ns: request.stopped_ns,
        }))
    }
}
