//! UDP sockets whose calls block the thread that makes them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;

use crate::ip::control::refuse_datagram;
use crate::ip::egress::{Egress, HOP_LIMIT};
use crate::ip::packet::{IpPacket, PROTOCOL_UDP, checksum};
use crate::net_stack::NetStack;
use crate::ports::{CHOSEN, ChosenPorts, NoPort, taken};
use crate::tcp::listening::add_waker;
use crate::threads::ThreadParking;

const HEADER_BYTES: usize = 8;
/// The most datagrams that wait to be received; further ones are lost.
const DATAGRAMS: usize = 256;

/// Datagrams that came for a port.
#[derive(Debug, Default)]
struct DatagramQueue {
    /// Lengths and senders.
    waiting: VecDeque<(usize, SocketAddr)>,
    bytes: VecDeque<u8>,
    readers: Vec<Waker>,
}

#[derive(Debug)]
struct UdpPort {
    limit_bytes: usize,
    queue: Mutex<DatagramQueue>,
}

impl UdpPort {
    fn queue(&self) -> MutexGuard<'_, DatagramQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports of UDP, and threads that wait for room in a lane.
pub(crate) struct UdpPorts {
    ports: RwLock<HashMap<u16, Arc<UdpPort>>>,
    chosen: ChosenPorts,
    senders: Mutex<Vec<Waker>>,
    has_senders: AtomicBool,
}

impl UdpPorts {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            ports: RwLock::default(),
            chosen: ChosenPorts::new(seed.rotate_left(17)),
            senders: Mutex::default(),
            has_senders: AtomicBool::new(false),
        }
    }

    /// Takes a port; 0 chooses one.
    fn bind(&self, port: u16, limit_bytes: usize) -> io::Result<(u16, Arc<UdpPort>)> {
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
        let made = Arc::new(UdpPort {
            limit_bytes,
            queue: Mutex::default(),
        });
        ports.insert(port, Arc::clone(&made));
        Ok((port, made))
    }

    fn unbind(&self, port: u16) {
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        ports.remove(&port);
    }

    /// A datagram came; `None` for a malformed one.
    pub(crate) fn on_packet<'a>(
        &self,
        packet: &IpPacket<'_>,
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
        }
        queue.readers.drain(..).for_each(Waker::wake);
        Some(())
    }

    fn wait_for_room(&self, waker: &Waker) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        add_waker(&mut senders, waker);
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
        senders.drain(..).for_each(Waker::wake);
    }
}

/// A UDP port of the application.
pub struct UdpSocket<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    queue: Arc<UdpPort>,
    port: u16,
}

impl<T: ThreadParking> UdpSocket<T> {
    /// Takes a port, of IPv4 and IPv6; 0 lets the stack choose.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when another socket of this application has it.
    pub fn bind(stack: &Arc<NetStack<T>>, port: u16) -> io::Result<Self> {
        let _section = stack.threads.enter_section();
        let (port, queue) = stack.udp.bind(port, stack.buffer_bytes)?;
        Ok(Self {
            stack: Arc::clone(stack),
            queue,
            port,
        })
    }

    /// The IPv4 address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.stack.own(self.port)
    }

    /// Waits for a datagram; returns its length and its sender. Bytes that do not fit `to` are lost.
    ///
    /// # Errors
    /// None today; the signature matches the standard library's.
    pub fn recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.stack.wait(|waker| {
            let _section = self.stack.threads.enter_section();
            let mut queue = self.queue.queue();
            let Some((length, from)) = queue.waiting.pop_front() else {
                add_waker(&mut queue.readers, waker);
                return None;
            };
            let bytes = length.min(to.len());
            for (to, byte) in to.iter_mut().zip(queue.bytes.drain(..length)) {
                *to = byte;
            }
            Some(Ok((bytes, from)))
        })
    }

    /// Sends a datagram; waits for room in the lane. It may get lost on its way, as any datagram.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a datagram that does not fit a packet, or for an address or a port that is nobody's;
    /// [`io::ErrorKind::AddrNotAvailable`] for IPv6 where the stack has no address of it.
    pub fn send_to(&self, from: &[u8], to: impl Into<SocketAddr>) -> io::Result<()> {
        let to = to.into();
        let own = self.stack.own_for(to)?;
        let most = self.stack.most_payload(to.ip(), HEADER_BYTES);
        if from.len() > most {
            let what = format!(
                "a datagram of {} bytes: a packet to {} has room for {most}",
                from.len(),
                to.ip()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.stack.wait(|waker| {
            self.stack.with_egress(|egress| {
                if !egress.has_lane_room() {
                    self.stack.udp.wait_for_room(waker);
                    return None;
                }
                egress.send_packet(own, to.ip(), PROTOCOL_UDP, HOP_LIMIT, |bytes, pseudo| {
                    write_datagram(bytes, (self.port, to.port()), from, pseudo)
                });
                Some(Ok(()))
            })
        })
    }
}

fn write_datagram(to: &mut [u8], ports: (u16, u16), from: &[u8], pseudo: u64) -> usize {
    let length = HEADER_BYTES + from.len();
    to[0..2].copy_from_slice(&ports.0.to_be_bytes());
    to[2..4].copy_from_slice(&ports.1.to_be_bytes());
    to[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    to[6..8].fill(0);
    to[HEADER_BYTES..length].copy_from_slice(from);
    let sum = checksum(pseudo + length as u64, &to[..length]);
    // 0 would mean that there is none.
    let sum = if sum == 0 { 0xFFFF } else { sum };
    to[6..8].copy_from_slice(&sum.to_be_bytes());
    length
}

impl<T: ThreadParking> Drop for UdpSocket<T> {
    fn drop(&mut self) {
        let _section = self.stack.threads.enter_section();
        self.stack.udp.unbind(self.port);
    }
}

impl<T: ThreadParking> fmt::Debug for UdpSocket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
