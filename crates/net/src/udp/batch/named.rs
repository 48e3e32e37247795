//! The batches of a switch: datagrams in buffers of their own, each from or to an address of its own.
#![expect(
    unsafe_code,
    reason = "the kernel reads and writes the buffers and the names by raw pointers"
)]

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::net::UdpSocket;

use libc::{iovec, sockaddr_in6};

use super::messages::Messages;
use super::slots::{ControlBuffer, NAME_BYTES, read_name, write_name};
use crate::header::HEADER_BYTES;
use crate::slot::{PAYLOAD_BYTES, Peer};

/// Datagrams per system call.
const BATCH: usize = 64;

/// Messages with a buffer and an address each, boxed so that the pointers stay valid when they move.
struct Addressed {
    messages: Messages<BATCH>,
    buffers: Box<[[u8; PAYLOAD_BYTES]]>,
    names: Box<[sockaddr_in6; BATCH]>,
}

impl Addressed {
    fn new() -> Self {
        // SAFETY: structures of integers, for which zeros are values.
        let names = unsafe { std::mem::zeroed() };
        let mut addressed = Self {
            messages: Messages::new(),
            buffers: vec![[0; PAYLOAD_BYTES]; BATCH].into_boxed_slice(),
            names: Box::new(names),
        };
        for (i, buffer) in addressed.buffers.iter_mut().enumerate() {
            *addressed.messages.buffer_mut(i) = iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: PAYLOAD_BYTES,
            };
            let message = addressed.messages.header_mut(i);
            message.msg_name = (&raw mut addressed.names[i]).cast();
            message.msg_namelen = NAME_BYTES;
        }
        addressed
    }
}

/// Room for a control message of each of these messages, to which they point.
fn own_controls(messages: &mut Messages<BATCH>) -> Box<[ControlBuffer; BATCH]> {
    // SAFETY: structures of integers, for which zeros are values.
    let mut controls: Box<[ControlBuffer; BATCH]> = Box::new(unsafe { std::mem::zeroed() });
    for (i, control) in controls.iter_mut().enumerate() {
        messages.header_mut(i).msg_control = (&raw mut *control).cast();
    }
    controls
}

/// Up to 64 datagrams received, each with its sender; of longer ones the first [`PAYLOAD_BYTES`] bytes.
pub struct NamedInbox {
    addressed: Addressed,
    controls: Box<[ControlBuffer; BATCH]>,
}

/// A datagram of a [`NamedInbox`].
#[derive(Debug, Clone, Copy)]
pub struct NamedDatagram<'a> {
    /// Its sender.
    pub from: Peer,
    /// Its bytes, as far as they fit.
    pub bytes: &'a [u8],
    /// Whether it was truncated.
    pub is_cut: bool,
    /// The number of the interface by which it came; 0 if the kernel does not say.
    pub interface: u32,
}

impl NamedInbox {
    /// A batch that nothing was received into yet.
    #[must_use]
    pub fn new() -> Self {
        let mut addressed = Addressed::new();
        Self {
            controls: own_controls(&mut addressed.messages),
            addressed,
        }
    }

    /// Receives the waiting datagrams, up to 64, without blocking; returns their number.
    ///
    /// # Errors
    ///
    /// No datagram waits (`WouldBlock`), or the kernel's error.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for i in 0..BATCH {
            let message = self.addressed.messages.header_mut(i);
            message.msg_namelen = NAME_BYTES;
            message.msg_controllen = size_of::<ControlBuffer>();
        }
        // SAFETY: the messages point to the batch's own buffers, names and control messages, whose sizes they state, borrowed exclusively
        // through the call.
        unsafe { self.addressed.messages.receive(socket, BATCH) }
    }

    /// Datagram `i` of the last receive.
    #[inline]
    #[must_use]
    pub fn datagram(&self, i: usize) -> NamedDatagram<'_> {
        let messages = &self.addressed.messages;
        NamedDatagram {
            from: read_name(&self.addressed.names[i]),
            bytes: &self.addressed.buffers[i][..messages.len(i).min(PAYLOAD_BYTES)],
            is_cut: messages.header(i).msg_flags & libc::MSG_TRUNC != 0,
            interface: self.controls[i].interface(messages.header(i).msg_controllen),
        }
    }

    /// The address of this machine that datagram `i` of the last receive was sent to, IPv4 mapped; [`ANY_IP`](crate::slot::Slot::ANY_IP) if that is a group's, or the kernel does not say.
    #[inline]
    #[must_use]
    pub fn asked_ip(&self, i: usize) -> [u8; 16] {
        self.controls[i].read(self.addressed.messages.header(i).msg_controllen)
    }
}

/// Up to 64 datagrams to be sent, each to an address of its own.
pub struct NamedOutbox {
    addressed: Addressed,
    /// The source addresses, once there are any.
    controls: Option<Box<[ControlBuffer; BATCH]>>,
    filled: usize,
    is_v4: bool,
}

impl NamedOutbox {
    /// An empty batch for a socket of this family.
    #[must_use]
    pub fn new(is_v4: bool) -> Self {
        Self {
            addressed: Addressed::new(),
            controls: None,
            filled: 0,
            is_v4,
        }
    }

    /// Whether there is no room for a further datagram.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled == BATCH
    }

    /// Adds a datagram of these two parts.
    ///
    /// # Panics
    ///
    /// When the batch is full, or the datagram is longer than [`PAYLOAD_BYTES`].
    #[inline]
    pub fn push(&mut self, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        let i = self.filled;
        let buffer = &mut self.addressed.buffers[i];
        let len = HEADER_BYTES + body.len();
        buffer[..HEADER_BYTES].copy_from_slice(&header);
        buffer[HEADER_BYTES..len].copy_from_slice(body);
        self.addressed.messages.buffer_mut(i).iov_len = len;
        let name_bytes = write_name(&mut self.addressed.names[i], to, self.is_v4);
        self.addressed.messages.header_mut(i).msg_namelen = name_bytes;
        self.filled += 1;
    }

    /// Has the datagram that was added last leave from this address, IPv4 mapped; from one that the kernel chooses, if it is [`ANY_IP`](crate::slot::Slot::ANY_IP). Once called, it must be
    /// called for every datagram.
    ///
    /// # Panics
    ///
    /// When the batch is empty.
    #[inline]
    pub fn leave_from(&mut self, ip: [u8; 16]) {
        let i = self.filled - 1;
        let addressed = &mut self.addressed;
        let controls = self
            .controls
            .get_or_insert_with(|| own_controls(&mut addressed.messages));
        let bytes = controls[i].write(ip, self.is_v4);
        addressed.messages.header_mut(i).msg_controllen = bytes;
    }

    /// Sends everything, without blocking, and empties the batch; returns how many datagrams the kernel refused.
    #[inline]
    pub fn flush(&mut self, socket: &UdpSocket) -> usize {
        let (mut next, mut refused) = (0, 0);
        while next < self.filled {
            // SAFETY: the messages point to the batch's own buffers, names and control messages, whose sizes they state, borrowed exclusively
            // through the call.
            let sent = unsafe {
                self.addressed
                    .messages
                    .send(socket, next..self.filled, libc::MSG_DONTWAIT)
            };
            match sent {
                Ok(sent) => next += sent,
                Err(_) => (next, refused) = (next + 1, refused + 1),
            }
        }
        self.filled = 0;
        refused
    }
}

impl Default for NamedInbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Debug for NamedInbox {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("NamedInbox").finish_non_exhaustive()
    }
}

impl Debug for NamedOutbox {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("NamedOutbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;
    use std::net::SocketAddr;

    #[test]
    fn datagrams_arrive_with_their_senders_cut_to_the_buffer() {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (hub, one, two) = (bind(), bind(), bind());
        let at = hub.local_addr().unwrap();
        one.send_to(b"one", at).unwrap();
        two.send_to(&[7; PAYLOAD_BYTES + 1], at).unwrap();
        let mut inbox = NamedInbox::new();
        assert_eq!(inbox.receive(&hub).unwrap(), 2);
        let (first, second) = (inbox.datagram(0), inbox.datagram(1));
        assert_eq!((first.bytes, first.is_cut), (&b"one"[..], false));
        assert_eq!(
            (second.bytes, second.is_cut),
            (&[7; PAYLOAD_BYTES][..], true)
        );
        let mut outbox = NamedOutbox::new(true);
        outbox.push(first.from, [1; HEADER_BYTES], b"to one");
        outbox.push(second.from, [2; HEADER_BYTES], b"");
        outbox.push(first.from, [3; HEADER_BYTES], b"");
        assert_eq!(outbox.flush(&hub), 0);
        let mut buffer = [0; 64];
        assert_eq!(one.recv(&mut buffer).unwrap(), HEADER_BYTES + 6);
        assert_eq!(
            &buffer[..HEADER_BYTES + 6],
            [&[1; HEADER_BYTES][..], b"to one"].concat()
        );
        assert_eq!(two.recv(&mut buffer).unwrap(), HEADER_BYTES);
        assert_eq!(one.recv(&mut buffer).unwrap(), HEADER_BYTES);
        assert_eq!(buffer[0], 3);
        assert!(inbox.receive(&hub).is_err(), "no more");
    }

    #[test]
    fn datagrams_leave_from_the_address_that_was_asked() {
        use nix::sys::socket::{setsockopt, sockopt};
        let hub = UdpSocket::bind("0.0.0.0:0").unwrap();
        setsockopt(&hub, sockopt::Ipv4PacketInfo, &true).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = hub.local_addr().unwrap().port();
        let (mut inbox, mut outbox) = (NamedInbox::new(), NamedOutbox::new(true));
        for host in 1..=3 {
            let asked = SocketAddr::from(([127, 0, 0, host], port));
            client.send_to(b"", asked).unwrap();
        }
        assert_eq!(inbox.receive(&hub).unwrap(), 3);
        for i in [2, 1, 0] {
            outbox.push(inbox.datagram(i).from, [0; HEADER_BYTES], b"");
            outbox.leave_from(inbox.asked_ip(i));
        }
        assert_eq!(outbox.flush(&hub), 0);
        // At this place of the batch the last datagram had a source that the kernel does not choose.
        outbox.push(inbox.datagram(0).from, [0; HEADER_BYTES], b"");
        outbox.leave_from(Slot::ANY_IP);
        assert_eq!(outbox.flush(&hub), 0);
        for host in [3, 2, 1, 1] {
            let (_, from) = client.recv_from(&mut [0; 64]).unwrap();
            assert_eq!(from, SocketAddr::from(([127, 0, 0, host], port)));
        }
    }

    #[test]
    fn what_the_kernel_refuses_stops_nothing_after_it() {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (hub, one) = (bind(), bind());
        let mut outbox = NamedOutbox::new(true);
        outbox.push(Peer::NOBODY, [1; HEADER_BYTES], b"");
        outbox.push(one.local_addr().unwrap().into(), [2; HEADER_BYTES], b"");
        assert_eq!(outbox.flush(&hub), 1);
        let mut buffer = [0; 64];
        assert_eq!(one.recv(&mut buffer).unwrap(), HEADER_BYTES);
    }
}
