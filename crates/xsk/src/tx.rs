//! The send side of a server on `AF_XDP`.

use std::io;
use std::sync::Arc;

use headway_net::datapath::Tx;
use headway_net::pool::{SlotId, SlotPool};
use headway_net::slot::Slot;
use headway_rings::ring::{PacketDescriptor, ProducerRing};

use crate::frame::{ResponseFrame, ReturnLink, UdpEnd};
use crate::mac::MacAddress;
use crate::queue::{DeviceQueue, SendEnd};
use crate::socket::XskSocket;
use crate::umem::FrameToken;

/// Calls after which a sender that finds no frame gives up.
const PATIENCE: usize = 64;

/// One thread's sending end: a socket of its own. One system call sends a frame or a burst, and copies them.
#[derive(Debug)]
pub struct XskTx {
    sender: FrameSender,
    own_mac: [u8; 6],
    port: u16,
}

/// Writes frames and hands them to the kernel.
#[derive(Debug)]
pub(crate) struct FrameSender {
    socket: XskSocket,
    ring: ProducerRing<2>,
    queue: Arc<DeviceQueue>,
    free: Vec<FrameToken>,
}

impl FrameSender {
    pub(crate) fn new(end: SendEnd) -> io::Result<Self> {
        Ok(Self {
            socket: end.socket,
            ring: end.rings.tx.ok_or(io::ErrorKind::InvalidData)?,
            queue: end.queue,
            free: Vec::new(),
        })
    }

    /// Writes a frame into the ring; it leaves with the next [`flush`](Self::flush). `write` returns its length, or `None` when it does not fit.
    #[inline]
    pub(crate) fn push(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> io::Result<()> {
        let mut frame = self.frame().ok_or(io::ErrorKind::WouldBlock)?;
        let Some(length) = write(self.queue.umem().bytes_mut(&mut frame)) else {
            self.free.push(frame);
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if !matches!(self.ring.room(1), Ok(1..)) {
            self.free.push(frame);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let packet = PacketDescriptor {
            address: frame.into_address(),
            length: length as u32,
            options: 0,
        };
        self.ring.push(packet.words());
        Ok(())
    }

    /// Makes the kernel send the written frames.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.ring.publish();
        self.socket.flush(&self.ring)
    }

    /// A frame to write to. Sent frames come back soon after the sending call.
    #[inline]
    fn frame(&mut self) -> Option<FrameToken> {
        for _ in 0..PATIENCE {
            if let Some(frame) = self.free.pop() {
                return Some(frame);
            }
            self.queue.take(&mut self.free);
            if self.free.is_empty() && self.flush().is_err() {
                std::hint::spin_loop();
            }
        }
        None
    }
}

impl XskTx {
    pub(crate) fn new(end: SendEnd, own_mac: MacAddress, port: u16) -> io::Result<Self> {
        Ok(Self {
            sender: FrameSender::new(end)?,
            own_mac: own_mac.0,
            port,
        })
    }

    #[inline]
    fn push(&mut self, slot: &Slot) -> io::Result<()> {
        let answer = ResponseFrame {
            own_mac: self.own_mac,
            link: ReturnLink::of(slot.link),
            from: UdpEnd {
                ip: slot.asked_ip,
                port: self.port,
            },
            to: UdpEnd {
                ip: slot.peer.ip(),
                port: slot.peer.port(),
            },
            payload: [slot.payload(), &[]],
        };
        self.sender.push(|frame| answer.write(frame))
    }
}

impl Tx for XskTx {
    fn send_is_system_call(&self) -> bool {
        true
    }

    #[inline]
    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, _now_ns: u64) -> io::Result<()> {
        self.push(pool.get(slot))?;
        self.sender.flush()
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], _now_ns: u64) -> usize {
        let mut sent = 0;
        for slot in slots {
            match self.push(pool.get(slot)) {
                Ok(()) => sent += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        // Frames left in the ring leave with the next response.
        let _ = self.sender.flush();
        sent
    }
}
