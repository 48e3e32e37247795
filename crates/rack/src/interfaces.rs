//! The interfaces that lead to the servers: the sides on which the switch hears them.

use headway_policy::rack::ServerId;
use std::sync::atomic::{AtomicU32, Ordering};

/// The interface that leads to each server, by the system's number. A thread beside the switch keeps them up to date.
#[derive(Debug)]
pub struct ServerInterfaces(Box<[AtomicU32]>);

impl ServerInterfaces {
    /// No known interface for each of `servers` servers: they are heard by any.
    #[must_use]
    pub fn unknown(servers: usize) -> Self {
        Self((0..servers).map(|_| AtomicU32::new(0)).collect())
    }

    /// Servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Hears this server by this interface alone from now on; by any, if that is 0.
    ///
    /// # Panics
    /// When there is no such server.
    pub fn set(&self, server: ServerId, interface: u32) {
        self.0[server.index()].store(interface, Ordering::Relaxed);
    }

    /// The interface by which the server is heard; 0 for any.
    #[inline]
    pub(crate) fn get(&self, server: ServerId) -> u32 {
        self.0[server.index()].load(Ordering::Relaxed)
    }
}
