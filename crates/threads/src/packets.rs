//! Packets that kthreads take between threads.

/// The network stack of a runtime, whose kthreads look for packets: when none has a thread to run, and at every sixty-fourth scheduling point.
///
/// Called by kthreads between two threads, so nothing here waits for a thread of the runtime.
pub trait PacketPoll: Send + Sync {
    /// Takes what waits, and sends what is due, by the lane of this kthread, which is the caller; whether there was anything.
    fn poll(&self, kthread: usize) -> bool;

    /// Whether a packet waits. A kthread asks before it gives its core back.
    fn has_packet(&self) -> bool;

    /// In how many ns something is due, such as a packet to be sent again: a kthread has a core then.
    fn due_in_ns(&self) -> Option<u64>;
}
