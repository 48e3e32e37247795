//! A queue of a device: the frames that its sockets share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use headway_rings::ring::ProducerRing;

use crate::device::NetDevice;
use crate::error::XskError;
use crate::socket::{FrameRingSizes, RingSizes, SocketRings, XskSocket};
use crate::umem::{CompletionRing, FrameToken, Umem};

/// Frames for arrivals: of all queues together, and the least of one queue.
const ARRIVAL_FRAMES: u32 = 4096;
pub(crate) const MOST_ARRIVALS: usize = ARRIVAL_FRAMES as usize;
const LEAST_ARRIVAL_FRAMES: u32 = 512;
/// Frames for departures of a sender, and entries of its ring.
const FRAMES_OF_SENDER: u32 = 128;
/// Frames that a sender takes at once from those of its queue.
const TAKEN_AT_ONCE: usize = 32;

/// The shared state of a queue's sockets. The locks are held for some nanoseconds: receivers try theirs, senders take theirs
/// once in [`TAKEN_AT_ONCE`] packets.
#[derive(Debug)]
pub(crate) struct DeviceQueue {
    umem: Arc<Umem>,
    /// The ring that hands frames to the kernel, for arrivals.
    fill: Mutex<ProducerRing<1>>,
    sent: Mutex<SentFrames>,
}

/// Frames for departures.
#[derive(Debug)]
struct SentFrames {
    completion: CompletionRing,
    free: Vec<FrameToken>,
}

impl DeviceQueue {
    pub(crate) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Hands frames to the kernel. While another thread does so, it keeps them for the next call.
    #[inline]
    pub(crate) fn try_refill(&self, frames: &mut Vec<FrameToken>) {
        if frames.is_empty() {
            return;
        }
        match self.fill.try_lock() {
            Ok(fill) => push(fill, frames),
            Err(TryLockError::Poisoned(fill)) => push(fill.into_inner(), frames),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Hands frames to the kernel.
    pub(crate) fn refill(&self, frames: &mut Vec<FrameToken>) {
        if !frames.is_empty() {
            push(locked(&self.fill), frames);
        }
    }

    /// Takes a few frames for departures; none when all are under way.
    pub(crate) fn take(&self, to: &mut Vec<FrameToken>) {
        let mut sent = locked(&self.sent);
        let SentFrames { completion, free } = &mut *sent;
        completion.drain(free);
        let rest = free.len().saturating_sub(TAKEN_AT_ONCE);
        to.extend(free.drain(rest..));
    }
}

/// The entries of a fill ring: two per frame. The kernel hands an arrival over before it frees the fill entry (`xsk_flush`), so a frame may
/// come back while its old entry is still in the ring.
fn fill_entries(arrivals: u32) -> u32 {
    2 * arrivals
}

/// The ring is never full: see [`fill_entries`].
fn push(mut fill: MutexGuard<'_, ProducerRing<1>>, frames: &mut Vec<FrameToken>) {
    for frame in frames.drain(..) {
        let is_taken = fill.push([frame.into_address()]);
        debug_assert!(is_taken, "the fill ring has room for all frames");
    }
    fill.publish();
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receiver's end of one queue.
#[derive(Debug)]
pub(crate) struct ReceiveEnd {
    pub(crate) socket: XskSocket,
    pub(crate) rings: SocketRings,
    pub(crate) queue: Arc<DeviceQueue>,
}

/// A sender's end.
#[derive(Debug)]
pub(crate) struct SendEnd {
    pub(crate) socket: XskSocket,
    pub(crate) rings: SocketRings,
    pub(crate) queue: Arc<DeviceQueue>,
}

/// All sockets on a device.
#[derive(Debug)]
pub(crate) struct DeviceSockets {
    /// Indexed by receiver, then by the device's queue.
    pub(crate) receivers: Vec<Vec<ReceiveEnd>>,
    pub(crate) senders: Vec<SendEnd>,
}

/// Opens sockets: each receiver gets one on every queue of the device, each sender one on a queue, round-robin.
pub(crate) fn open(
    device: &NetDevice,
    receivers: usize,
    senders: usize,
) -> Result<DeviceSockets, XskError> {
    let queues = device.queues;
    let arrivals = (ARRIVAL_FRAMES / queues.next_power_of_two()).max(LEAST_ARRIVAL_FRAMES);
    let senders_each = (senders as u32).div_ceil(queues).max(1);
    let departures = (senders_each * FRAMES_OF_SENDER).next_power_of_two();
    let frames = (arrivals + departures) as usize * queues as usize;
    let failed = |source| XskError::System {
        device: device.name.clone(),
        operation: "packet memory",
        source,
    };
    let (umem, mut tokens) = Umem::new(frames, device.frame_bytes()).map_err(failed)?;
    let umem = Arc::new(umem);
    let mut sockets = DeviceSockets {
        receivers: (0..receivers).map(|_| Vec::new()).collect(),
        senders: Vec::new(),
    };
    let mut shared: Vec<Arc<DeviceQueue>> = Vec::new();
    let mut first: Option<(usize, usize)> = None;
    for number in 0..queues {
        for receiver in 0..receivers {
            let sizes = RingSizes {
                rx: arrivals,
                tx: 0,
                frames: (receiver == 0).then_some(FrameRingSizes {
                    fill: fill_entries(arrivals),
                    completion: departures,
                }),
            };
            let named = first.map(|(receiver, queue)| &sockets.receivers[receiver][queue].socket);
            let (socket, mut rings) = XskSocket::open(device, number, &umem, named, sizes)?;
            first = first.or(Some((0, 0)));
            if let (Some(fill), Some(completion)) = (rings.fill.take(), rings.completion.take()) {
                let free = tokens.split_off(tokens.len() - departures as usize);
                let queue = DeviceQueue {
                    umem: Arc::clone(&umem),
                    fill: Mutex::new(fill),
                    sent: Mutex::new(SentFrames { completion, free }),
                };
                queue.refill(&mut tokens.split_off(tokens.len() - arrivals as usize));
                shared.push(Arc::new(queue));
            }
            sockets.receivers[receiver].push(ReceiveEnd {
                socket,
                rings,
                queue: Arc::clone(&shared[number as usize]),
            });
        }
    }
    for sender in 0..senders {
        let number = sender as u32 % queues;
        let queue = &shared[number as usize];
        let first = &sockets.receivers[0][0].socket;
        let sender = open_sender(device, number, first, queue)?;
        sockets.senders.push(sender);
    }
    Ok(sockets)
}

/// Opens a sender's socket on a queue of the device. It shares the packet memory of the device's `first` socket.
fn open_sender(
    device: &NetDevice,
    number: u32,
    first: &XskSocket,
    queue: &Arc<DeviceQueue>,
) -> Result<SendEnd, XskError> {
    let sizes = RingSizes {
        tx: FRAMES_OF_SENDER,
        ..RingSizes::default()
    };
    let (socket, rings) = XskSocket::open(device, number, &queue.umem, Some(first), sizes)?;
    Ok(SendEnd {
        socket,
        rings,
        queue: Arc::clone(queue),
    })
}
