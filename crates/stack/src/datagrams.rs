//! The ports of UDP, and the datagrams that came for them.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;

use headway_rings::lane::MOST_PACKET_BYTES;

use crate::ip::control::refuse_datagram;
use crate::ip::egress::Egress;
use crate::ip::packet::IpPacket;
use crate::ports::{CHOSEN, ChosenPorts, NoPort, taken};
use crate::tcp::flow::FlowSecrets;
use crate::tcp::wakers::Wakers;

/// Bytes of a datagram's header.
pub(crate) const HEADER_BYTES: usize = 8;
/// The most datagrams that wait to be received; further ones are lost.
const DATAGRAMS: usize = 256;

/// Datagrams that came for a port.
#[derive(Debug, Default)]
pub(crate) struct DatagramQueue {
    /// Lengths and senders.
    pub(crate) waiting: VecDeque<(usize, SocketAddr)>,
    pub(crate) bytes: VecDeque<u8>,
    pub(crate) readers: Wakers,
}

#[derive(Debug)]
pub(crate) struct DatagramPort {
    limit_bytes: usize,
    queue: Mutex<DatagramQueue>,
}

impl DatagramPort {
    pub(crate) fn queue(&self) -> MutexGuard<'_, DatagramQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports of UDP, and threads that wait for room in a lane.
pub(crate) struct UdpPorts {
    ports: RwLock<HashMap<u16, Arc<DatagramPort>>>,
    chosen: ChosenPorts,
    senders: Mutex<Wakers>,
    has_senders: AtomicBool,
}

impl UdpPorts {
    pub(crate) fn new(secrets: &FlowSecrets) -> Self {
        Self {
            ports: RwLock::default(),
            chosen: ChosenPorts::new(secrets, 5),
            senders: Mutex::default(),
            has_senders: AtomicBool::new(false),
        }
    }

    /// Takes a port; 0 chooses one.
    pub(crate) fn bind(
        &self,
        port: u16,
        limit_bytes: usize,
    ) -> io::Result<(u16, Arc<DatagramPort>)> {
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        let port = if port == 0 {
            let mut candidates = (0..CHOSEN).map(|_| self.chosen.next());
            candidates
                .find(|port| !ports.contains_key(port))
                .ok_or(NoPort)?
        } else {
            port
        };
        if ports.contains_key(&port) {
            return Err(taken(port));
        }
        let made = Arc::new(DatagramPort {
            // An empty queue takes any datagram: one that never fits would be lost however fast the socket is read.
            limit_bytes: limit_bytes.max(MOST_PACKET_BYTES),
            queue: Mutex::default(),
        });
        ports.insert(port, Arc::clone(&made));
        Ok((port, made))
    }

    pub(crate) fn unbind(&self, port: u16) {
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        ports.remove(&port);
    }

    /// A datagram came; `None` for a malformed one. One that its socket's queue has no room for is counted in `overrun`.
    pub(crate) fn on_packet<'a>(
        &self,
        packet: &IpPacket<'_>,
        overrun: &AtomicU64,
        egress: impl FnOnce() -> Egress<'a>,
    ) -> Option<()> {
        let header: &[u8; HEADER_BYTES] = packet.payload.first_chunk()?;
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (from_port, to_port, length) = (field(0), field(2), usize::from(field(4)));
        let datagram = packet.payload.get(HEADER_BYTES..length)?;
        // IPv4 may leave the checksum out.
        let has_checksum = field(6) != 0 || packet.source.is_ipv6();
        let trimmed = IpPacket {
            payload: &packet.payload[..length],
            ..*packet
        };
        if has_checksum && !trimmed.has_right_checksum() {
            return None;
        }
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        let Some(port) = ports.get(&to_port).map(Arc::clone) else {
            drop(ports);
            refuse_datagram(packet, &mut egress());
            return Some(());
        };
        drop(ports);
        let mut queue = port.queue();
        let has_room = queue.bytes.len() + datagram.len() <= port.limit_bytes;
        if has_room && queue.waiting.len() < DATAGRAMS {
            let from = SocketAddr::new(packet.source, from_port);
            queue.waiting.push_back((datagram.len(), from));
            queue.bytes.extend(datagram);
        } else {
            overrun.fetch_add(1, Ordering::Relaxed);
        }
        queue.readers.wake();
        Some(())
    }

    pub(crate) fn wait_for_room(&self, waker: &Waker) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.add(waker);
        self.has_senders.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_waiting_senders(&self) -> bool {
        self.has_senders.load(Ordering::Relaxed)
    }

    /// Wakes the threads that wait for room, if there is.
    pub(crate) fn wake_senders(&self, has_room: impl FnOnce() -> bool) {
        if !self.has_waiting_senders() || !has_room() {
            return;
        }
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_senders.store(false, Ordering::Relaxed);
        senders.wake();
    }
}
