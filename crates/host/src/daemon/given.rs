//! What a registration brings, and what it is answered.

use std::os::fd::OwnedFd;

use crate::message::NetworkPlace;
use crate::peer::PeerProcess;
use nix::sched::CpuSet;

/// The sender of a message.
pub(super) struct Speaker {
    pub(super) id: u64,
    pub(super) peer: PeerProcess,
    pub(super) home: CpuSet,
}

/// The descriptors and answer for a registered application.
pub(super) struct Given {
    pub(super) kthreads: usize,
    pub(super) memory: Option<OwnedFd>,
    pub(super) doorbell: OwnedFd,
    pub(super) network: Option<GivenNetwork>,
}

pub(super) struct GivenNetwork {
    pub(super) place: NetworkPlace,
    pub(super) memory: OwnedFd,
}

/// The memory that an application of an earlier daemon brings.
pub(super) struct BroughtMemory {
    pub(super) lines: OwnedFd,
    pub(super) lanes: Option<OwnedFd>,
}
