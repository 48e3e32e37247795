//! The switch's port in the world.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_net::header::HEADER_BYTES;
use headway_net::slot::Peer;
use headway_rack::{LocalAddress, LostPackets, PacketPort, PacketSink, PortWaker, ReceivedPacket};

/// A packet: its sender when it comes, its receiver when it goes, and its bytes.
pub(super) type AddressedPacket = (SocketAddr, Vec<u8>);

#[derive(Default)]
pub(super) struct PortQueues {
    pub(super) coming: VecDeque<AddressedPacket>,
    pub(super) going: Vec<AddressedPacket>,
}

/// Both ends of the port.
#[derive(Clone, Default)]
pub(super) struct PortHandle(Arc<Mutex<PortQueues>>);

impl PortHandle {
    pub(super) fn lock(&self) -> MutexGuard<'_, PortQueues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The port.
pub(super) struct WorldPort {
    at: SocketAddr,
    batch: Vec<AddressedPacket>,
    sink: WorldSink,
}

pub(super) struct WorldSink(PortHandle);

struct NoWaker;

impl PortWaker for NoWaker {
    fn wake(&self) {}
}

impl WorldPort {
    pub(super) fn new(at: SocketAddr, queues: &PortHandle) -> Self {
        Self {
            at,
            batch: Vec::new(),
            sink: WorldSink(queues.clone()),
        }
    }
}

impl PacketSink for WorldSink {
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        let packet = [&header[..], body].concat();
        self.0.lock().going.push((to.socket_addr(), packet));
    }
}

impl PacketPort for WorldPort {
    type Sink = WorldSink;

    fn local_addr(&self) -> SocketAddr {
        self.at
    }

    fn receive(&mut self) -> usize {
        let coming = &mut self.sink.0.lock().coming;
        let count = coming.len().min(64);
        self.batch = coming.drain(..count).collect();
        count
    }

    fn each(&mut self, mut take: impl FnMut(ReceivedPacket<'_>, &mut WorldSink)) {
        for (from, bytes) in &self.batch {
            let packet = ReceivedPacket::of(Peer::from(*from), bytes);
            take(packet, &mut self.sink);
        }
    }

    fn sink(&mut self) -> &mut WorldSink {
        &mut self.sink
    }

    fn flush(&mut self) {}

    fn wait(&self, _timeout_ns: u64) {}

    fn waker(&self) -> Arc<dyn PortWaker> {
        Arc::new(NoWaker)
    }

    fn lost(&self) -> LostPackets {
        LostPackets::default()
    }
}
