//! The send side of a UDP socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use headway_machine::thread::fork::ParentsOnly;

use super::batch::Batch;
use crate::datapath::Tx;
use crate::pool::{SlotId, SlotPool};
use crate::slot::Peer;

/// The sending end of a UDP socket. It shares the socket with a receive queue, so that responses come from the requests' destination port.
#[derive(Debug)]
pub struct UdpTx {
    socket: Arc<ParentsOnly<UdpSocket>>,
    is_v4: bool,
    /// Whether the socket is bound to all addresses, so that each response must name its source.
    on_all: bool,
    batch: Batch,
}

impl UdpTx {
    /// `addr` is the address that the socket is bound to.
    pub(super) fn new(socket: Arc<ParentsOnly<UdpSocket>>, addr: SocketAddr) -> UdpTx {
        UdpTx {
            socket,
            is_v4: addr.is_ipv4(),
            on_all: addr.ip().is_unspecified(),
            batch: Batch::new(),
        }
    }

    fn destination(&self, peer: Peer) -> SocketAddr {
        if self.is_v4 {
            peer.socket_addr()
        } else {
            SocketAddr::V6(peer.mapped())
        }
    }
}

impl Tx for UdpTx {
    fn send_is_system_call(&self) -> bool {
        true
    }

    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, _now_ns: u64) -> io::Result<()> {
        if self.on_all {
            let one = std::slice::from_mut(slot);
            return self
                .batch
                .send(&self.socket, self.is_v4, pool, one)
                .map(drop);
        }
        let slot = pool.get(slot);
        self.socket
            .send_to(slot.payload(), self.destination(slot.peer))
            .map(drop)
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], _now_ns: u64) -> usize {
        let (mut next, mut sent) = (0, 0);
        while next < slots.len() {
            match self
                .batch
                .send(&self.socket, self.is_v4, pool, &mut slots[next..])
            {
                Ok(taken) => (next, sent) = (next + taken, sent + taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The kernel refused the first response for good (an unreachable peer): skip it and send the others.
                Err(_) => next += 1,
            }
        }
        sent
    }
}
