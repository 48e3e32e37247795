//! The interface through which kthreads take packets between threads.

/// The network stack of a runtime, whose kthreads look for packets: when none has a thread to run, and at every sixty-fourth scheduling point.
///
/// Kthreads call it between two threads, so no method may wait for a thread of the runtime.
pub trait PacketPoll: Send + Sync {
    /// Takes the waiting packets and sends the due ones by the lane of this kthread, which is the caller. Returns whether there were any.
    fn poll(&self, kthread: usize) -> bool;

    /// Whether a packet waits. A kthread asks before it gives its core back.
    fn has_packet(&self) -> bool;

    /// The time until something is due, such as a retransmission, in ns. A kthread gets a core then.
    fn due_in_ns(&self) -> Option<u64>;
}
