//! The receive side of a server on `AF_XDP`.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use headway_machine::Clock;
use headway_machine::thread::fork::ParentsOnly;
use headway_net::datapath::{Rx, Scratch};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::slot::{PAYLOAD_BYTES, Peer, Slot};
use headway_net::waker::Waker;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::frame::{ReceivedDatagram, parse};
use crate::program::SteerProgram;
use crate::queue::{DeviceQueue, ReceiveEnd};
use crate::socket::XskSocket;
use crate::umem::{FrameToken, RxRing};

/// A receive queue: a socket on each of the device's queues. A poll is no system call.
#[derive(Debug)]
pub struct XskRx {
    sockets: Vec<RxSocket>,
    waker: Waker,
    /// An epoll descriptor that is readable while a packet waits at any of the sockets.
    readable: Epoll,
    clock: Clock,
    /// Datagrams with a wrong checksum, or from a sender without a return path.
    rejected: AtomicU64,
    /// The attachment, which the last receive queue ends.
    program: Arc<AttachedProgram>,
    /// Whether this queue counts what the program drops for all of them.
    is_first: bool,
}

/// Keeps the program attached, and the port reserved.
pub(crate) struct AttachedProgram {
    pub(crate) program: SteerProgram,
    #[expect(dead_code, reason = "it is closed")]
    pub(crate) reserved: ParentsOnly<OwnedFd>,
}

impl std::fmt::Debug for AttachedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedProgram").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct RxSocket {
    /// Locked by one thread at a time; a poll by another thread finds nothing meanwhile.
    state: Mutex<RxState>,
    socket: XskSocket,
    queue: Arc<DeviceQueue>,
}

#[derive(Debug)]
struct RxState {
    ring: RxRing,
    /// Frames to hand back to the kernel.
    done: Vec<FrameToken>,
}

impl XskRx {
    pub(crate) fn new(
        ends: Vec<ReceiveEnd>,
        program: &Arc<AttachedProgram>,
        is_first: bool,
    ) -> io::Result<Self> {
        let readable = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut sockets = Vec::new();
        for end in ends {
            let ring = end.rings.rx.ok_or(io::ErrorKind::InvalidData)?;
            readable.add(end.socket.fd(), EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
            sockets.push(RxSocket {
                state: Mutex::new(RxState {
                    ring,
                    done: Vec::with_capacity(crate::queue::MOST_ARRIVALS),
                }),
                socket: end.socket,
                queue: end.queue,
            });
        }
        Ok(Self {
            sockets,
            waker: Waker::new()?,
            readable,
            clock: Clock::global(),
            rejected: AtomicU64::new(0),
            program: Arc::clone(program),
            is_first,
        })
    }

    /// Takes up to `max` requests from a socket.
    #[inline]
    fn poll_one(
        &self,
        socket: &RxSocket,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        let Some(mut state) = socket.try_state() else {
            return 0;
        };
        let RxState { ring, done } = &mut *state;
        let waiting = ring.waiting(max as u32) as usize;
        if waiting == 0 {
            socket.queue.try_refill(done);
            return 0;
        }
        // One clock reading serves the batch; earlier waiting shows only in the client's latency.
        let arrived_ns = self.clock.now_ns();
        let mut received = 0;
        while received < max {
            if free.is_empty() {
                break;
            }
            let Some(frame) = ring.pop() else { break };
            match parse(frame.packet(socket.queue.umem())) {
                Some(datagram) => {
                    if let Some(mut id) = free.take() {
                        describe(pool.get_mut(&mut id), &datagram, arrived_ns);
                        out.push(id);
                        received += 1;
                    }
                }
                None => {
                    self.rejected.fetch_add(1, Ordering::Relaxed);
                }
            }
            done.push(frame.token);
        }
        ring.release();
        socket.queue.try_refill(done);
        received
    }
}

impl RxSocket {
    #[inline]
    fn try_state(&self) -> Option<MutexGuard<'_, RxState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

fn describe(slot: &mut Slot, datagram: &ReceivedDatagram<'_>, arrived_ns: u64) {
    let length = datagram.payload.len().min(PAYLOAD_BYTES);
    slot.arrived_ns = arrived_ns;
    slot.service_hint_ns = 0;
    slot.index = 0;
    slot.peer = Peer::at(datagram.from.ip, datagram.from.port);
    slot.class = Slot::UNCLASSIFIED;
    slot.truncated = datagram.payload.len() > PAYLOAD_BYTES;
    slot.asked_ip = datagram.to.ip;
    slot.link = datagram.link.bytes();
    slot.buffer_mut()[..length].copy_from_slice(&datagram.payload[..length]);
    slot.set_len(length);
}

impl Rx for XskRx {
    fn poll_is_system_call(&self) -> bool {
        false
    }

    fn scratch(&self) -> Scratch {
        Scratch::None
    }

    #[inline]
    fn poll(
        &self,
        _now_ns: u64,
        _scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        let mut received = 0;
        for socket in &self.sockets {
            received += self.poll_one(socket, pool, free, out, max - received);
        }
        received
    }

    fn backlog_hint(&self) -> usize {
        let waiting = self.sockets.iter().map(|socket| match socket.try_state() {
            Some(mut state) => state.ring.waiting(u32::MAX / 2) as usize,
            // Another thread is taking packets.
            None => 1,
        });
        waiting.sum()
    }

    fn wait(&self, timeout_ns: u64) {
        // Hands frames back now, since the kernel would lack them until the next poll.
        for socket in &self.sockets {
            if let Some(mut state) = socket.try_state() {
                socket.queue.refill(&mut state.done);
            }
        }
        self.waker.wait(Some(self.readable.0.as_fd()), timeout_ns);
    }

    fn wake(&self) {
        self.waker.wake();
    }

    fn finished(&self) -> bool {
        false
    }

    fn dropped(&self) -> u64 {
        let by_kernel: u64 = self
            .sockets
            .iter()
            .map(|socket| socket.socket.dropped())
            .sum();
        let stripped = if self.is_first {
            self.program.program.stripped()
        } else {
            0
        };
        by_kernel + self.rejected.load(Ordering::Relaxed) + stripped
    }
}
