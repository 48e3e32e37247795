//! UDP sockets whose calls block the thread that makes them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::datagrams::{DatagramPort, HEADER_BYTES};
use crate::ip::egress::HOP_LIMIT;
use crate::ip::packet::{PROTOCOL_UDP, checksum};
use crate::net_stack::NetStack;
use crate::threads::ThreadParking;

/// A UDP port of the application.
pub struct UdpSocket<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    queue: Arc<DatagramPort>,
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
                queue.readers.add(waker);
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
    /// [`io::ErrorKind::InvalidInput`] for a datagram that does not fit a packet, for an address or a port that is nobody's, or for the stack's own address;
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
