//! How often a busy worker looks at the receive queue.

use headway_net::datapath::Rx;

/// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
pub const LOOK_NS: u64 = 5_000;

/// The same where a poll is a system call: one in vain takes 0.84 µs (EPYC 9004, `recvmmsg` of an empty UDP socket), 3 % of this.
const LOOK_BY_SYSTEM_CALL_NS: u64 = 25_000;

/// How often a busy worker polls a receive queue of this kind, unless told otherwise, ns.
pub(crate) fn usual_look_ns(rx: &dyn Rx) -> u64 {
    if rx.poll_is_system_call() {
        LOOK_BY_SYSTEM_CALL_NS
    } else {
        LOOK_NS
    }
}
