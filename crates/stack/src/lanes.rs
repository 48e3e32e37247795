//! An application's lanes. Any kthread takes packets from all of them, and sends by its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use headway_rings::lane::{
    LANE_PACKETS, LaneEnds, MOST_PACKET_BYTES, PacketReceiver, PacketSender, Taken,
};

/// Counts of an application's packets by fate, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounts {
    /// Taken from the lanes.
    pub received: u64,
    /// Written into a lane.
    pub sent: u64,
    /// Lost: the lane was full. TCP retransmits them.
    pub full: u64,
    /// Received and ignored: malformed, with a wrong checksum, a fragment, or for nobody here.
    pub ignored: u64,
    /// Lost: no neighbour told the address to which they would go, or too many waited for it.
    pub unreachable: u64,
    /// Datagrams lost: their socket's queue was full.
    pub overrun: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LaneCounters {
    received: AtomicU64,
    sent: AtomicU64,
    full: AtomicU64,
    pub(crate) ignored: AtomicU64,
    pub(crate) overrun: AtomicU64,
    /// The count of sent packets when the bell last rang.
    told_sent: AtomicU64,
}

/// The receiving end of a lane, and a buffer for the packet that is being handled.
struct LaneReceiver {
    receiver: PacketReceiver,
    buffer: Box<[u8; MOST_PACKET_BYTES]>,
}

/// The sending end of a lane, and a buffer for the packet that is being written.
pub(crate) struct LaneSender {
    sender: PacketSender,
    pub(crate) buffer: Box<[u8; MOST_PACKET_BYTES]>,
}

impl LaneSender {
    /// Whether a packet can leave. A broken lane accepts packets and loses them, since the stack would otherwise retry for ever.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.sender.has_room() != Ok(false)
    }

    /// Sends the first bytes of the buffer.
    pub(crate) fn send_buffer(&mut self, length: usize, counters: &LaneCounters) {
        let count = match self.sender.send(&self.buffer[..length]) {
            Ok(true) => &counters.sent,
            Ok(false) | Err(_) => &counters.full,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Lanes {
    receivers: Vec<Mutex<LaneReceiver>>,
    senders: Vec<Mutex<LaneSender>>,
    pub(crate) counters: LaneCounters,
}

/// The lock, unless another thread has it.
fn unless_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Lanes {
    pub(crate) fn new(lanes: Vec<LaneEnds>) -> Self {
        let (mut receivers, mut senders) = (Vec::new(), Vec::new());
        for LaneEnds { sender, receiver } in lanes {
            receivers.push(Mutex::new(LaneReceiver {
                receiver,
                buffer: Box::new([0; MOST_PACKET_BYTES]),
            }));
            senders.push(Mutex::new(LaneSender {
                sender,
                buffer: Box::new([0; MOST_PACKET_BYTES]),
            }));
        }
        Self {
            receivers,
            senders,
            counters: LaneCounters::default(),
        }
    }

    /// Whether a packet waits in a lane that no other thread is taking packets from. A broken lane has none.
    pub(crate) fn has_packet(&self) -> bool {
        let mut receivers = self.receivers.iter().filter_map(unless_locked);
        receivers.any(|mut lane| lane.receiver.has_packet() == Ok(true))
    }

    /// Whether packets wait to be taken by the data plane.
    pub(crate) fn has_unsent(&self) -> bool {
        let mut senders = self.senders.iter();
        senders.any(|lane| {
            let lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            lane.sender.unread() > 0
        })
    }

    /// Handles the packets that wait, the lane of this kthread first; leaves lanes alone that another thread is taking packets from. Returns whether there
    /// were any.
    pub(crate) fn receive(&self, kthread: usize, mut handle: impl FnMut(&[u8])) -> bool {
        let mut count = 0;
        for turn in 0..self.receivers.len() {
            let at = (kthread + turn) % self.receivers.len();
            let Some(mut lane) = unless_locked(&self.receivers[at]) else {
                continue;
            };
            let LaneReceiver { receiver, buffer } = &mut *lane;
            // A flood does not keep the kthread here.
            for _ in 0..LANE_PACKETS {
                match receiver.receive(buffer) {
                    Ok(Taken::Packet(length)) => {
                        count += 1;
                        handle(&buffer[..length]);
                    }
                    Ok(Taken::Invalid) => {}
                    Ok(Taken::Nothing) | Err(_) => break,
                }
            }
        }
        self.counters.received.fetch_add(count, Ordering::Relaxed);
        count > 0
    }

    /// The lane by which packets of this kthread leave; kthreads beyond the lanes share them.
    pub(crate) fn sender(&self, kthread: usize) -> MutexGuard<'_, LaneSender> {
        let lane = &self.senders[kthread % self.senders.len()];
        lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether packets were written since the last call.
    pub(crate) fn has_sent(&self) -> bool {
        let sent = self.counters.sent.load(Ordering::Relaxed);
        let told = &self.counters.told_sent;
        told.load(Ordering::Relaxed) != sent && told.swap(sent, Ordering::Relaxed) != sent
    }

    pub(crate) fn counts(&self) -> LaneCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LaneCounts {
            received: of(&self.counters.received),
            sent: of(&self.counters.sent),
            full: of(&self.counters.full),
            ignored: of(&self.counters.ignored),
            unreachable: 0,
            overrun: of(&self.counters.overrun),
        }
    }
}
