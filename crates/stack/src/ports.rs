//! Ports of TCP: those that listen, and those that the stack chooses for connections.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::tcp::flow::FlowSecrets;

/// The first of the ports that the stack chooses.
pub(crate) const FIRST_CHOSEN: u16 = 49152;
/// How many those are.
pub(crate) const CHOSEN: u32 = (u16::MAX - FIRST_CHOSEN) as u32 + 1;

/// All ports that the stack chooses from are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPort;

impl From<NoPort> for io::Error {
    fn from(_: NoPort) -> Self {
        io::Error::new(
            io::ErrorKind::AddrInUse,
            "no port is free: close some sockets",
        )
    }
}

/// The error for a port that another socket has.
pub(crate) fn taken(port: u16) -> io::Error {
    let what = format!(
        "another socket of this application has port {port}: close it, or choose another port"
    );
    io::Error::new(io::ErrorKind::AddrInUse, what)
}

/// The next chosen port, in turn.
pub(crate) struct ChosenPorts(AtomicU32);

impl ChosenPorts {
    /// They begin with one that tells nothing of the secrets, since peers see it.
    pub(crate) fn new(secrets: &FlowSecrets, purpose: u64) -> Self {
        Self(AtomicU32::new(secrets.derive(purpose) as u32))
    }

    pub(crate) fn next(&self) -> u16 {
        let number = self.0.fetch_add(1, Ordering::Relaxed) % CHOSEN;
        FIRST_CHOSEN + number as u16
    }
}

pub(crate) struct TcpPorts {
    listening: Mutex<HashSet<u16>>,
    chosen: ChosenPorts,
}

impl TcpPorts {
    pub(crate) fn new(secrets: &FlowSecrets) -> Self {
        Self {
            listening: Mutex::default(),
            chosen: ChosenPorts::new(secrets, 4),
        }
    }

    /// Takes a port to listen at; 0 chooses one.
    pub(crate) fn listen(&self, port: u16) -> io::Result<u16> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if port != 0 {
            return if listening.insert(port) {
                Ok(port)
            } else {
                Err(taken(port))
            };
        }
        let mut candidates = (0..CHOSEN).map(|_| self.chosen.next());
        let free = candidates.find(|port| listening.insert(*port));
        free.ok_or_else(|| NoPort.into())
    }

    pub(crate) fn unlisten(&self, port: u16) {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listening.remove(&port);
    }

    /// Has `begin` begin a connection from a port, until it does: a port is free for one if its flow is.
    pub(crate) fn connect<R>(&self, mut begin: impl FnMut(u16) -> Option<R>) -> io::Result<R> {
        let mut candidates = (0..CHOSEN).map(|_| self.chosen.next());
        let begun = candidates.find_map(|port| {
            let is_listening = {
                let listening = self.listening.lock();
                listening
                    .unwrap_or_else(PoisonError::into_inner)
                    .contains(&port)
            };
            if is_listening { None } else { begin(port) }
        });
        begun.ok_or_else(|| NoPort.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peers see chosen ports.
    #[test]
    fn the_first_port_says_nothing_of_the_seed() {
        let offsets = (0..64).map(|low| {
            let secrets = FlowSecrets::new([7, low]);
            let ports = [4, 5].map(|purpose| ChosenPorts::new(&secrets, purpose).next());
            assert_ne!(ports[0], ports[1], "TCP's and UDP's");
            (u32::from(ports[0]) + CHOSEN - low as u32) % CHOSEN
        });
        let different: HashSet<u32> = offsets.collect();
        assert!(different.len() > 60, "{different:?}");
    }
}
