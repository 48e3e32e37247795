//! The boundary between the loop of a switch and a kind of socket.

use crate::local_addresses::LocalAddresses;
use crate::packet::{LocalAddress, PacketSink, ReceivedPacket};
use headway_net::header::HEADER_BYTES;
use headway_net::slot::Peer;
use headway_net::udp::batch::{NamedInbox, NamedOutbox};
use headway_net::udp::{BindError, UdpHub};
use std::net::SocketAddr;
use std::sync::Arc;

/// A switch's one port: batches of packets in, batches of packets out.
pub trait PacketPort {
    /// The sink that collects packets to be sent.
    type Sink: PacketSink;

    /// The address to which clients and servers send.
    fn local_addr(&self) -> SocketAddr;

    /// Receives a batch of waiting packets in place of the last batch; returns their number.
    fn receive(&mut self) -> usize;

    /// Hands each packet of the last batch to `take`, with the sink for the packets that it sends.
    fn each(&mut self, take: impl FnMut(ReceivedPacket<'_>, &mut Self::Sink));

    /// The sink for packets that the switch sends on a timer's behalf.
    fn sink(&mut self) -> &mut Self::Sink;

    /// Sends the packets that the sink has collected.
    fn flush(&mut self);

    /// Blocks until packets may wait, [`PortWaker::wake`] was called, or the timeout passed; may return early.
    fn wait(&self, timeout_ns: u64);

    /// The waker with which another thread ends [`wait`](Self::wait).
    fn waker(&self) -> Arc<dyn PortWaker>;

    /// Counts of the packets that the port lost so far.
    fn lost(&self) -> LostPackets;
}

/// Packets that a port lost, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LostPackets {
    /// Packets not sent: the system refused them, the port had no room, or their link is unknown.
    pub unsent: u64,
    /// Packets that arrived and never reached the switch: no room, a wrong checksum, a sender without a return path. `None` where only the
    /// system counts them.
    pub rejected: Option<u64>,
    /// Answers that left from an address that the system chose, which need not be the one that the client asked: the port keeps 254 addresses, and none of a group.
    /// A client whose socket is connected drops such an answer. `None` where the port has one address.
    pub other_source: Option<u64>,
}

/// Ends the wait of a port.
pub trait PortWaker: Send + Sync {
    /// Makes the current or the next wait return.
    fn wake(&self);
}

/// A UDP socket, 64 packets a call.
pub struct UdpPort {
    hub: Arc<UdpHub>,
    inbox: NamedInbox,
    received: usize,
    outbox: UdpSink,
}

/// Packets on their way out of a [`UdpPort`].
pub struct UdpSink {
    hub: Arc<UdpHub>,
    batch: NamedOutbox,
    unsent: u64,
    /// Of a port at an unspecified address.
    sources: Option<Sources>,
}

/// The addresses that clients ask.
struct Sources {
    addresses: LocalAddresses,
    /// Answers whose address has no number.
    other: u64,
}

impl UdpPort {
    /// Binds `listen`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// [`BindError`], which names the remedy.
    pub fn bind(listen: SocketAddr) -> Result<Self, BindError> {
        let hub = Arc::new(UdpHub::bind(listen)?);
        let sources = listen.ip().is_unspecified().then(|| Sources {
            addresses: LocalAddresses::new(),
            other: 0,
        });
        Ok(Self {
            inbox: NamedInbox::new(),
            received: 0,
            outbox: UdpSink {
                hub: Arc::clone(&hub),
                batch: hub.outbox(),
                unsent: 0,
                sources,
            },
            hub,
        })
    }
}

impl UdpSink {
    fn flush(&mut self) {
        self.unsent += self.hub.flush(&mut self.batch) as u64;
    }
}

impl PacketSink for UdpSink {
    #[inline]
    fn send(&mut self, from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push(to, header, body);
        if let Some(sources) = &mut self.sources {
            sources.other += u64::from(from == LocalAddress::UNNUMBERED);
            self.batch.leave_from(sources.addresses.ip(from));
        }
    }
}

impl PortWaker for UdpHub {
    fn wake(&self) {
        Self::wake(self);
    }
}

impl PacketPort for UdpPort {
    type Sink = UdpSink;

    fn local_addr(&self) -> SocketAddr {
        self.hub.local_addr()
    }

    fn receive(&mut self) -> usize {
        self.received = self.hub.receive(&mut self.inbox);
        self.received
    }

    #[inline]
    fn each(&mut self, mut take: impl FnMut(ReceivedPacket<'_>, &mut UdpSink)) {
        for i in 0..self.received {
            let sources = &mut self.outbox.sources;
            let to = sources.as_mut().map_or(LocalAddress::ANY, |sources| {
                sources.addresses.number(self.inbox.asked_ip(i))
            });
            let packet = self.inbox.datagram(i);
            let packet = ReceivedPacket {
                from: packet.from,
                bytes: packet.bytes,
                is_cut: packet.is_cut,
                interface: packet.interface,
                to,
            };
            take(packet, &mut self.outbox);
        }
    }

    fn sink(&mut self) -> &mut UdpSink {
        &mut self.outbox
    }

    fn flush(&mut self) {
        self.outbox.flush();
    }

    fn wait(&self, timeout_ns: u64) {
        self.hub.wait(timeout_ns);
    }

    fn waker(&self) -> Arc<dyn PortWaker> {
        Arc::<UdpHub>::clone(&self.hub)
    }

    fn lost(&self) -> LostPackets {
        LostPackets {
            unsent: self.outbox.unsent,
            rejected: None,
            other_source: self.outbox.sources.as_ref().map(|sources| sources.other),
        }
    }
}
