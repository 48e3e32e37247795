//! The side of the arbiter that applications link, as `headway-host` has it, and models of it.

#[path = "../../../../host/src/client/links.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the host's other code uses more of it"
)]
mod links;
mod models;

/// The models have no packets.
mod network {
    #[derive(Debug)]
    pub(crate) enum ModelNetwork {}

    pub(crate) use self::ModelNetwork as ClientNetwork;
}

/// What the links ask of the kernel for the calling thread.
mod thread {
    use std::os::fd::BorrowedFd;

    pub(crate) fn own_tid() -> u32 {
        7
    }

    /// The arbiters of the models never sleep.
    pub(crate) fn ring(_doorbell: BorrowedFd<'_>) {}
}
