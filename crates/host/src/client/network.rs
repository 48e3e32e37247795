//! An application's packets.

use crate::lanes::SharedLanes;
use crate::message::NetworkPlace;
use headway_rings::lane::LaneEnds;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// An application's place in the network, and the lanes of its packets.
#[derive(Debug)]
pub struct ClientNetwork {
    place: NetworkPlace,
    lanes: SharedLanes,
    /// The memory of the lanes, for this daemon's successor.
    pub(super) memory: OwnedFd,
    is_taken: AtomicBool,
}

impl ClientNetwork {
    pub(super) fn new(place: NetworkPlace, lanes: SharedLanes, memory: OwnedFd) -> Self {
        Self {
            place,
            lanes,
            memory,
            is_taken: AtomicBool::new(false),
        }
    }

    /// The application's place in the network.
    pub fn place(&self) -> NetworkPlace {
        self.place
    }

    /// Its ends of the lanes, in the order of its kthreads; `None` after the first call, since each end has one owner.
    pub fn take_lanes(&self) -> Option<Vec<LaneEnds>> {
        let is_taken = self.is_taken.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| self.lanes.of_application())
    }
}
