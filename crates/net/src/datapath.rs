//! Where requests come from and responses go: the traits behind which all datapaths look alike.

use std::io;
use std::sync::Arc;

use crate::pool::{FreeList, Pool, SlotId};

/// A source of requests and a sink of responses, before the threads that will use them exist.
pub trait Datapath {
    /// One receive queue.
    type Rx: Rx;
    /// One thread's way out.
    type Tx: Tx;

    /// Divides the datapath into `rx_queues` receive queues (one for a central dispatcher, one per worker for
    /// d-FCFS) and `tx` ways out, one per thread that sends.
    ///
    /// # Errors
    ///
    /// When the system refuses the queues, or the datapath cannot be divided that way.
    fn split(self, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds<Self::Rx, Self::Tx>>;
}

/// The two ends of a datapath.
#[derive(Debug)]
pub struct DatapathEnds<R, T> {
    /// The receive queues.
    pub rxs: Vec<Arc<R>>,
    /// A way out for each thread that sends.
    pub txs: Vec<T>,
}

/// A receive queue. Any thread may poll it, so that an idle worker can steal from another's.
pub trait Rx: Send + Sync {
    /// A thread's arrays for polling, set up once instead of at each call.
    type Scratch: Send;

    /// Whether a poll is a system call, so that one in vain takes the better part of a microsecond.
    fn poll_is_system_call(&self) -> bool;

    /// Scratch space for one polling thread, usable with all queues of this kind.
    fn scratch(&self) -> Self::Scratch;

    /// Takes up to `max` waiting requests into slots from `free` and appends their tokens to `out`, oldest
    /// first; returns how many. Never blocks. One call may take fewer than are waiting. `now_ns` is when the caller last looked at
    /// the clock: where requests arrive by the clock, it need not be read twice.
    ///
    /// Does not allocate if `out` has room for `max` more.
    fn poll(
        &self,
        now_ns: u64,
        scratch: &mut Self::Scratch,
        pool: &Pool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize;

    /// About how many requests are waiting; 0 only if none is.
    fn backlog_hint(&self) -> usize;

    /// Blocks until a request may be waiting, [`wake`](Rx::wake) is or was called, or `timeout_ns` have passed; may
    /// also return early. A wake since the previous `wait` ended is never lost. For one thread at a time, and one with free
    /// slots: without any, requests that cannot be taken end every wait at once.
    fn wait(&self, timeout_ns: u64);

    /// Makes the current or the next [`wait`](Rx::wait) return, from any thread. Cheap when nobody waits.
    fn wake(&self);

    /// Whether no request will ever come again: a replay that has handed out its schedule.
    fn finished(&self) -> bool;

    /// Requests that were lost because this queue was full, since it was opened: the server never saw them.
    fn dropped(&self) -> u64;
}

/// One thread's way out.
pub trait Tx: Send {
    /// Whether sending is a system call, so that it takes the better part of a microsecond.
    fn send_is_system_call(&self) -> bool;

    /// Sends the slot's payload to the slot's peer; `now_ns` is when the request was completed.
    ///
    /// The slot stays the caller's, to be reused or given back.
    ///
    /// # Errors
    ///
    /// When the system does not take the response: it is lost, as on any datagram network.
    fn send(&mut self, pool: &Pool, slot: &mut SlotId, now_ns: u64) -> io::Result<()>;

    /// Sends the refusals written into `slots` and returns how many the system took.
    ///
    /// Separate from [`send`](Tx::send) because sheds come in bursts, and because a replay counts them apart.
    fn send_sheds(&mut self, pool: &Pool, slots: &mut [SlotId], now_ns: u64) -> usize;
}
