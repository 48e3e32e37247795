//! Which servers take requests: those that have cores.

use super::ServerId;
use alloc::vec::Vec;

/// The servers that have cores, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct PresentServers {
    servers: Vec<u16>,
}

impl PresentServers {
    /// All of `servers` servers.
    pub(super) fn all(servers: usize) -> Self {
        Self {
            servers: (0..servers as u16).collect(),
        }
    }

    /// A server has so many cores now. Without any it takes no requests.
    pub(super) fn capacity(&mut self, server: ServerId, cores: usize) {
        match (self.servers.binary_search(&server.0), cores > 0) {
            (Ok(place), false) => {
                self.servers.remove(place);
            }
            // As many entries as there were in the beginning: nothing is allocated.
            (Err(place), true) => self.servers.insert(place, server.0),
            _ => {}
        }
    }

    /// Whether the server takes requests.
    pub(super) fn has(&self, server: ServerId) -> bool {
        self.servers.binary_search(&server.0).is_ok()
    }

    /// Servers that take requests.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.servers.len()
    }

    /// The server at this place, 0 to `count` − 1.
    #[inline]
    pub(super) fn at(&self, place: usize) -> usize {
        usize::from(self.servers[place])
    }

    /// The place of the first server that is not below `server`, or of the first of all.
    #[inline]
    pub(super) fn place_from(&self, server: u16) -> usize {
        let place = self.servers.partition_point(|&other| other < server);
        if place < self.servers.len() { place } else { 0 }
    }

    /// In ascending order.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.servers.iter().map(|&server| usize::from(server))
    }
}
