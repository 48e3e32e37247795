//! The boundary between the client's threads and a kind of socket.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use headway_machine::Clock;
use headway_net::header::HEADER_BYTES;
use headway_net::slot::{PAYLOAD_BYTES, Peer};
use headway_net::udp::batch::{Inbox, Outbox};
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::moment::realtime_ns;
use crate::socket::ClientSocket;

/// Requests sent in one system call when they are due together.
pub(crate) const SEND_BATCH: usize = 32;

/// Replies received in one system call.
pub(crate) const RECEIVE_BATCH: usize = 64;

/// A client's port: both threads use it at once.
pub(crate) trait ClientPort: Copy + Send + Sync {
    type Out: OutgoingRequests;
    type In: IncomingReplies;

    /// The sender's end.
    fn outgoing(&self) -> Self::Out;

    /// The receiver's end.
    fn incoming(&self) -> Self::In;

    /// Whether each reply has the time of its arrival.
    fn is_stamped(&self) -> bool;

    /// The clock of these times.
    fn stamp_clock(&self) -> Clock;

    /// Waits until a reply can be read, or so long; may return early.
    fn wait_readable(&self, most_ns: u64);

    /// Sleeps for so long; may return early.
    fn sleep(&self, duration_ns: u64);
}

/// Up to [`SEND_BATCH`] requests on their way out.
pub(crate) trait OutgoingRequests {
    /// Lets `write` fill request `i` and return its length.
    fn fill(&mut self, i: usize, write: impl FnOnce(&mut [u8; PAYLOAD_BYTES]) -> usize);

    /// Sends the requests of a range; returns how many of them were taken.
    fn send(&mut self, range: std::ops::Range<usize>) -> io::Result<usize>;
}

/// Up to [`RECEIVE_BATCH`] replies.
pub(crate) trait IncomingReplies {
    /// Receives the waiting replies without blocking; returns their number.
    fn receive(&mut self) -> io::Result<usize>;

    /// The beginning of reply `i` of the last receive, and when it arrived by the stamps' clock.
    fn reply(&self, i: usize) -> (&[u8], Option<u64>);
}

impl<'a> ClientPort for &'a ClientSocket {
    type Out = UdpRequests<'a>;
    type In = UdpReplies<'a>;

    fn outgoing(&self) -> UdpRequests<'a> {
        let mut outbox = Outbox::new();
        if let Some(to) = self.unconnected_to {
            outbox.address_to(Peer::from(to), to.is_ipv4());
        }
        let socket = self;
        UdpRequests { socket, outbox }
    }

    fn incoming(&self) -> UdpReplies<'a> {
        UdpReplies {
            socket: self,
            inbox: Inbox::new(),
        }
    }

    fn is_stamped(&self) -> bool {
        self.stamped
    }

    fn stamp_clock(&self) -> Clock {
        Clock::given(realtime_ns)
    }

    /// An interrupted wait is a short one.
    fn wait_readable(&self, most_ns: u64) {
        let mut fds = [PollFd::new(self.udp.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut fds, Some(Duration::from_nanos(most_ns).into()), None);
    }

    fn sleep(&self, duration_ns: u64) {
        std::thread::sleep(Duration::from_nanos(duration_ns));
    }
}

/// Requests out of a UDP socket.
pub(crate) struct UdpRequests<'a> {
    socket: &'a ClientSocket,
    outbox: Outbox<SEND_BATCH, PAYLOAD_BYTES>,
}

impl OutgoingRequests for UdpRequests<'_> {
    #[inline]
    fn fill(&mut self, i: usize, write: impl FnOnce(&mut [u8; PAYLOAD_BYTES]) -> usize) {
        self.outbox.fill(i, write);
    }

    #[inline]
    fn send(&mut self, range: std::ops::Range<usize>) -> io::Result<usize> {
        self.outbox.send(&self.socket.udp, range)
    }
}

/// Replies at a UDP socket.
pub(crate) struct UdpReplies<'a> {
    socket: &'a ClientSocket,
    /// Only the wire header of a reply is kept; the rest is ignored.
    inbox: Inbox<RECEIVE_BATCH, HEADER_BYTES>,
}

impl IncomingReplies for UdpReplies<'_> {
    #[inline]
    fn receive(&mut self) -> io::Result<usize> {
        self.inbox.receive(&self.socket.udp)
    }

    #[inline]
    fn reply(&self, i: usize) -> (&[u8], Option<u64>) {
        self.inbox.datagram(i)
    }
}
