//! The receive side of a UDP socket.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use headway_machine::Clock;
use headway_machine::thread::fork::ParentsOnly;

use super::batch::{Batch, Received};
use super::options;
use crate::datapath::{Rx, Scratch};
use crate::pool::{FreeList, SlotId, SlotPool};
use crate::slot::Slot;
use crate::waker::Waker;

/// The bytes that the kernel charges a socket for a small datagram; the backlog is estimated by them.
const SMALL_DATAGRAM_BYTES: u32 = 768;

/// A receive queue that is a UDP socket.
#[derive(Debug)]
pub struct UdpRx {
    socket: Arc<ParentsOnly<UdpSocket>>,
    waker: Waker,
    clock: Clock,
    /// The address that the socket is bound to.
    ip: [u8; 16],
    port: u16,
}

impl UdpRx {
    /// `addr` is the address that the socket is bound to.
    pub(super) fn new(socket: Arc<ParentsOnly<UdpSocket>>, addr: SocketAddr) -> io::Result<UdpRx> {
        let ip = match addr.ip() {
            ip if ip.is_unspecified() => Slot::ANY_IP,
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Ok(UdpRx {
            socket,
            waker: Waker::new()?,
            clock: Clock::global(),
            ip,
            port: addr.port(),
        })
    }

    /// Whether the datagram's sender is its own destination. Only this server has that address, so the datagram is forged, to make the server
    /// answer itself.
    #[inline]
    fn is_own(&self, received: &Received) -> bool {
        let ip = if self.ip == Slot::ANY_IP {
            received.asked_ip
        } else {
            self.ip
        };
        received.peer.is_at(ip, self.port)
    }

    fn describe(&self, slot: &mut Slot, received: &Received, arrived_ns: u64) {
        slot.arrived_ns = arrived_ns;
        slot.service_hint_ns = 0;
        slot.index = 0;
        slot.peer = received.peer;
        slot.class = Slot::UNCLASSIFIED;
        slot.truncated = received.truncated;
        slot.asked_ip = received.asked_ip;
        // The server does not answer empty datagrams.
        let is_own = self.is_own(received);
        slot.set_len(if is_own { 0 } else { received.len });
    }
}

impl Rx for UdpRx {
    fn poll_is_system_call(&self) -> bool {
        true
    }

    fn scratch(&self) -> Scratch {
        Scratch::Udp(Batch::new())
    }

    /// `arrived_ns` is when the datagram was taken from the kernel, one reading for the batch: time spent in
    /// the kernel's queue shows in the client's latency only. So the caller's reading is too early to serve.
    fn poll(
        &self,
        _now_ns: u64,
        scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        let Scratch::Udp(batch) = scratch else {
            unreachable!("a thread polls with the arrays of the queue's own kind");
        };
        // An empty queue is an error too (EAGAIN), and no other error concerns a later datagram.
        let received = batch.receive(&self.socket, pool, free, max).unwrap_or(0);
        if received == 0 {
            return 0;
        }
        let arrived_ns = self.clock.now_ns();
        for i in 0..received {
            let mut id = free
                .take()
                .expect("a batch is no larger than the free list");
            self.describe(pool.get_mut(&mut id), &batch.received(i), arrived_ns);
            out.push(id);
        }
        received
    }

    fn backlog_hint(&self) -> usize {
        let waiting_bytes = options::memory(&self.socket).map_or(0, |memory| memory.waiting_bytes);
        waiting_bytes.div_ceil(SMALL_DATAGRAM_BYTES) as usize
    }

    fn wait(&self, timeout_ns: u64) {
        self.waker.wait(Some(self.socket.as_fd()), timeout_ns);
    }

    fn wake(&self) {
        self.waker.wake();
    }

    fn finished(&self) -> bool {
        false
    }

    /// The kernel's count: only the kernel can distinguish a lost request from one that was never sent.
    fn dropped(&self) -> u64 {
        options::memory(&self.socket).map_or(0, |memory| u64::from(memory.drops))
    }
}
