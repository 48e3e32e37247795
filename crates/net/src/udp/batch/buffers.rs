//! The batches of a client: datagrams in buffers of their own, with the kernel's receive stamps.
#![expect(
    unsafe_code,
    reason = "the kernel reads and writes the buffers by raw pointers, and control messages are parsed in place"
)]

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::net::UdpSocket;
use std::ops::Range;

use libc::{c_int, iovec, sockaddr_in6, timespec};

use super::messages::Messages;
use super::slots::write_name;
use crate::slot::Peer;

/// Messages and the buffers that they point to, boxed so that the pointers stay valid when they move.
struct Buffered<const N: usize, const BYTES: usize> {
    messages: Messages<N>,
    buffers: Box<[[u8; BYTES]; N]>,
}

impl<const N: usize, const BYTES: usize> Buffered<N, BYTES> {
    fn new() -> Self {
        let mut buffered = Self {
            messages: Messages::new(),
            buffers: Box::new([[0; BYTES]; N]),
        };
        for (i, buffer) in buffered.buffers.iter_mut().enumerate() {
            *buffered.messages.buffer_mut(i) = iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: BYTES,
            };
        }
        buffered
    }
}

/// Up to `N` datagrams of at most `BYTES` bytes, to be sent to one address: a connected socket's peer, or the one of [`address_to`](Self::address_to).
pub struct Outbox<const N: usize, const BYTES: usize> {
    buffered: Buffered<N, BYTES>,
    /// Boxed, so that the messages' pointers to it stay valid.
    name: Box<sockaddr_in6>,
}

impl<const N: usize, const BYTES: usize> Outbox<N, BYTES> {
    /// A batch of empty buffers.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: a structure of integers, for which zeros are values.
        let name = unsafe { std::mem::zeroed() };
        Self {
            buffered: Buffered::new(),
            name: Box::new(name),
        }
    }

    /// Sends all further messages to this address, by a socket of this family that is not connected.
    pub fn address_to(&mut self, to: Peer, is_v4: bool) {
        let bytes = write_name(&mut self.name, to, is_v4);
        let name = &raw mut *self.name;
        for i in 0..N {
            let message = self.buffered.messages.header_mut(i);
            message.msg_name = name.cast();
            message.msg_namelen = bytes;
        }
    }

    /// Lets `write` fill message `i` and return its length.
    ///
    /// # Panics
    ///
    /// If it is longer than `BYTES`.
    #[inline]
    pub fn fill(&mut self, i: usize, write: impl FnOnce(&mut [u8; BYTES]) -> usize) {
        let len = write(&mut self.buffered.buffers[i]);
        assert!(
            len <= BYTES,
            "a request of {len} bytes is longer than its buffer of {BYTES}"
        );
        self.buffered.messages.buffer_mut(i).iov_len = len;
    }

    /// Sends the messages of a range, waiting for room where the socket does; returns how many of them the kernel took.
    ///
    /// # Errors
    ///
    /// The kernel refused the first, or reports that an earlier datagram reached no listener.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, range: Range<usize>) -> io::Result<usize> {
        // SAFETY: the messages point to the outbox's own buffers, each at most `BYTES` long, and to its name or none, borrowed
        // exclusively through the call.
        unsafe { self.buffered.messages.send(socket, range, 0) }
    }
}

/// Room for one stamp, aligned as control messages are: 16 bytes of header and 16 of time.
type StampBuffer = [u64; 8];

/// Up to `N` datagrams received; of each, the first `BYTES` bytes are kept.
pub struct Inbox<const N: usize, const BYTES: usize> {
    buffered: Buffered<N, BYTES>,
    controls: Box<[StampBuffer; N]>,
}

impl<const N: usize, const BYTES: usize> Inbox<N, BYTES> {
    /// A batch that nothing was received into yet.
    #[must_use]
    pub fn new() -> Self {
        let mut inbox = Self {
            buffered: Buffered::new(),
            controls: Box::new([[0; 8]; N]),
        };
        for (i, control) in inbox.controls.iter_mut().enumerate() {
            inbox.buffered.messages.header_mut(i).msg_control = control.as_mut_ptr().cast();
        }
        inbox
    }

    /// Receives the waiting datagrams, up to `N`, without blocking; returns their number.
    ///
    /// # Errors
    ///
    /// No datagram waits (`WouldBlock`), or the kernel reports that an earlier one reached no listener.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for i in 0..N {
            self.buffered.messages.header_mut(i).msg_controllen = size_of::<StampBuffer>();
        }
        // SAFETY: the messages point to the inbox's own buffers and controls, whose sizes they state, borrowed exclusively
        // through the call.
        unsafe { self.buffered.messages.receive(socket, N) }
    }

    /// The beginning of datagram `i` of the last receive, and when the kernel says it arrived, in ns
    /// of `CLOCK_REALTIME`.
    #[inline]
    pub fn datagram(&self, i: usize) -> (&[u8], Option<u64>) {
        let messages = &self.buffered.messages;
        let len = messages.len(i).min(BYTES);
        (
            &self.buffered.buffers[i][..len],
            stamp_ns(messages.header(i)),
        )
    }
}

impl<const N: usize, const BYTES: usize> Default for Outbox<N, BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const BYTES: usize> Default for Inbox<N, BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const BYTES: usize> Debug for Outbox<N, BYTES> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl<const N: usize, const BYTES: usize> Debug for Inbox<N, BYTES> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// The time in the first control message: the only one asked for.
fn stamp_ns(header: &libc::msghdr) -> Option<u64> {
    const KIND: (c_int, c_int) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to `msg_control`, which
    // `CMSG_FIRSTHDR` checks to be enough for a header.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (control.cmsg_level, control.cmsg_type) != KIND {
        return None;
    }
    // SAFETY: a control message of this kind contains a `timespec`, for which the buffer has room.
    let time = unsafe { libc::CMSG_DATA(control).cast::<timespec>().read_unaligned() };
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(two.local_addr().unwrap()).unwrap();
        two.connect(one.local_addr().unwrap()).unwrap();
        (one, two)
    }

    #[test]
    fn what_is_sent_is_received_in_order_cut_to_the_buffer() {
        let (one, two) = pair();
        let mut outbox = Outbox::<4, 32>::new();
        for i in 0..3 {
            outbox.fill(i, |buffer| {
                buffer.fill(i as u8);
                4 + 8 * i
            });
        }
        assert_eq!(outbox.send(&one, 0..1).unwrap(), 1);
        assert_eq!(outbox.send(&one, 1..3).unwrap(), 2);
        let mut inbox = Inbox::<8, 16>::new();
        assert_eq!(inbox.receive(&two).unwrap(), 3);
        assert_eq!(inbox.datagram(0).0, [0; 4]);
        assert_eq!(inbox.datagram(1).0, [1; 12]);
        assert_eq!(inbox.datagram(2).0, [2; 16]);
        let error = inbox.receive(&two).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn stamps_come_only_when_asked_for_and_with_every_batch() {
        use nix::sys::socket::{setsockopt, sockopt};
        let (one, two) = pair();
        let mut inbox = Inbox::<2, 16>::new();
        one.send(b"unstamped").unwrap();
        assert_eq!(inbox.receive(&two).unwrap(), 1);
        assert_eq!(inbox.datagram(0).1, None);
        setsockopt(&two, sockopt::ReceiveTimestampns, &true).unwrap();
        for _ in 0..3 {
            one.send(b"stamped").unwrap();
            assert_eq!(inbox.receive(&two).unwrap(), 1);
            assert!(inbox.datagram(0).1.is_some());
        }
    }
}
