//! Requests that wait at a dispatcher.

use headway_net::pool::SlotId;
use headway_net::slot::Slot;
use headway_policy::{ClassId, Job, JobId};

/// A request that waits at the dispatcher.
pub(super) struct Waiting {
    pub(super) slot: SlotId,
    /// Whether it was interrupted, so that its fiber goes on.
    pub(super) suspended: bool,
}

/// A request as a policy sees it.
#[inline]
pub(super) fn describe(id: JobId, slot: &Slot) -> Job {
    Job {
        id,
        class: ClassId(slot.class),
        flow: 0,
        arrived_ns: slot.arrived_ns,
        size_ns: 0,
        attained_ns: 0,
        said_long: false,
    }
}
