//! A device's packets as a switch's port, without the kernel's network stack.

use crate::{LocalAddress, LostPackets, PacketPort, PacketSink, PortWaker, ReceivedPacket};
use headway_net::header::HEADER_BYTES;
use headway_net::slot::Peer;
use headway_net::waker::Waker;
use headway_xsk::{PortDatagram, XskUdpPort, XskUdpSender};
use std::net::SocketAddr;
use std::sync::Arc;

impl PacketSink for XskUdpSender {
    #[inline]
    fn send(&mut self, _from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        Self::send(self, to, [&header, body]);
    }
}

impl PortWaker for Waker {
    fn wake(&self) {
        Self::wake(self);
    }
}

impl PacketPort for XskUdpPort {
    type Sink = XskUdpSender;

    fn local_addr(&self) -> SocketAddr {
        Self::local_addr(self)
    }

    fn receive(&mut self) -> usize {
        Self::receive(self)
    }

    #[inline]
    fn each(&mut self, mut take: impl FnMut(ReceivedPacket<'_>, &mut XskUdpSender)) {
        Self::each(self, |PortDatagram { from, bytes }, out| {
            // A frame that does not fit is never handed over in part. Clients and servers are behind the same device.
            take(ReceivedPacket::of(from, bytes), out);
        });
    }

    fn sink(&mut self) -> &mut XskUdpSender {
        self.sender()
    }

    fn flush(&mut self) {
        self.sender().flush();
    }

    fn wait(&self, timeout_ns: u64) {
        Self::wait(self, timeout_ns);
    }

    fn waker(&self) -> Arc<dyn PortWaker> {
        Self::waker(self)
    }

    fn lost(&self) -> LostPackets {
        LostPackets {
            unsent: self.unsent(),
            rejected: Some(self.dropped()),
            other_source: None,
        }
    }
}
