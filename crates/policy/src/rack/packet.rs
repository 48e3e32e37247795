//! Requests and responses on their way through a switch.

use crate::ClassId;

/// A server of the rack: an index below the number of servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u16);

impl ServerId {
    /// As an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The clone bits of the header's flag (Pallas § 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mark {
    /// 0: there is one copy.
    #[default]
    Plain,
    /// 1: the copy that its own group serves.
    Original,
    /// 2: the copy that another group serves if it can at once.
    Clone,
}

/// A request on its way through the switch: what its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its type.
    pub class: ClassId,
    /// Unique among the requests in flight.
    pub index: u32,
    /// Whether there are two of it.
    pub mark: Mark,
    /// It comes back from a server that did not begin it.
    pub bounced: bool,
}

impl Packet {
    /// A request as a client sends it.
    #[must_use]
    pub fn new(class: ClassId, index: u32) -> Self {
        Self {
            class,
            index,
            mark: Mark::Plain,
            bounced: false,
        }
    }
}

/// A response on its way through the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Who served it.
    pub server: ServerId,
    /// Its type.
    pub class: ClassId,
    /// That of the request.
    pub index: u32,
    /// That of the request.
    pub mark: Mark,
    /// What it took, ns of a core's time; 0 when the server shed it.
    pub execution_ns: u64,
    /// Requests at the server after this one, running ones included.
    pub queue: u32,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forward {
    /// It goes to this server.
    To(ServerId),
    /// It goes to the first as [`Mark::Original`] and to the second as [`Mark::Clone`].
    Both(ServerId, ServerId),
    /// It waits in the switch.
    Held,
    /// The switch has no room for it.
    Shed,
}
