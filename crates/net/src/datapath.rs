//! The interface of datapaths: traits for sources of requests and sinks of responses.
//!
//! An engine calls them through pointers, so it is compiled once for all of them. That costs a call a batch received, and a call a response.

use std::io;
use std::sync::Arc;

use crate::pool::{FreeList, SlotId, SlotPool};
use crate::udp::batch::Batch;

/// A datapath, a source of requests and a sink of responses, before it is divided among threads.
pub trait Datapath: Send {
    /// Divides the datapath into `rx_queues` receive queues (one for a central dispatcher, one per worker for d-FCFS)
    /// and `tx` sending ends, one per sending thread.
    ///
    /// # Errors
    ///
    /// When the system refuses the queues, or the datapath cannot be divided that way.
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds>;
}

/// The two ends of a datapath.
pub struct DatapathEnds {
    /// The receive queues.
    pub rxs: Vec<Arc<dyn Rx>>,
    /// The sending ends, one for each sending thread.
    pub txs: Vec<Box<dyn Tx>>,
}

impl std::fmt::Debug for DatapathEnds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatapathEnds")
            .field("rxs", &self.rxs.len())
            .field("txs", &self.txs.len())
            .finish()
    }
}

/// A thread's arrays for polling, set up once instead of at each call.
#[derive(Debug)]
pub enum Scratch {
    /// The queue needs none.
    None,
    /// What one system call receives.
    Udp(Batch),
}

/// A receive queue. Any thread may poll it, so an idle worker can steal from another worker's queue.
pub trait Rx: Send + Sync {
    /// Whether a poll is a system call: an empty poll then takes the better part of a microsecond.
    fn poll_is_system_call(&self) -> bool;

    /// Scratch space for one polling thread, usable with all queues of this kind.
    fn scratch(&self) -> Scratch;

    /// Takes up to `max` waiting requests into slots from `free` and appends their tokens to `out`, oldest first; returns how
    /// many. Never blocks. One call may take fewer than are waiting. `now_ns` is the caller's last reading of the clock, which
    /// saves a second reading where requests arrive by the clock.
    ///
    /// Does not allocate if `out` has room for `max` more.
    fn poll(
        &self,
        now_ns: u64,
        scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize;

    /// About how many requests are waiting; 0 only if none is.
    fn backlog_hint(&self) -> usize;

    /// Blocks until a request may be waiting, [`wake`](Rx::wake) is or was called, or `timeout_ns` have passed; may also
    /// return early. A wake since the previous `wait` ended is never lost. Only one thread at a time may wait, and it needs
    /// free slots: without them, the waiting requests end every wait at once.
    fn wait(&self, timeout_ns: u64);

    /// Makes the current or the next [`wait`](Rx::wait) return, from any thread. Cheap when nobody waits.
    fn wake(&self);

    /// Whether the queue has ended, like a replay that has handed out its schedule.
    fn finished(&self) -> bool;

    /// Requests lost since the queue was opened, because it was full: the server never saw them.
    fn dropped(&self) -> u64;
}

/// One thread's sending end.
pub trait Tx: Send {
    /// Whether sending is a system call, which takes the better part of a microsecond.
    fn send_is_system_call(&self) -> bool;

    /// Sends the slot's payload to the slot's peer; `now_ns` is when the request was completed.
    ///
    /// The caller keeps the slot, to reuse it or give it back.
    ///
    /// # Errors
    ///
    /// When the system refuses the response, which is then lost, as on any datagram network.
    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, now_ns: u64) -> io::Result<()>;

    /// Sends the refusals written into `slots` and returns how many the system took.
    ///
    /// Separate from [`send`](Tx::send) because refusals come in bursts, and because a replay counts them separately.
    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], now_ns: u64) -> usize;
}
