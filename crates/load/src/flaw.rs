//! Flaws of a run, which make it measure something else than the server.

use std::fmt;
use std::net::SocketAddr;

use headway_report::LOST_FRACTION_MAX;

/// The largest fraction of requests that may leave late.
pub(crate) const LATE_FRACTION_MAX: f64 = 0.01;

/// A reason not to trust a run's latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flaw {
    /// No process listened on the server's port.
    Refused {
        /// Datagrams that the server's machine refused.
        count: u64,
        /// The address that they were sent to: of a name's several addresses the first.
        target: SocketAddr,
    },
    /// The system refused to send.
    SendFailed {
        /// Requests that never left.
        count: u64,
    },
    /// More than 0.1 % of the requests were never answered.
    Lost {
        /// Their fraction, 0 to 1.
        fraction: f64,
    },
    /// More than 1 % of the requests left late.
    Late {
        /// Their fraction, 0 to 1.
        fraction: f64,
        /// By more than this, in ns.
        bound_ns: u64,
    },
    /// More than 0.1 % of the requests were answered with an error.
    Failed {
        /// Their fraction, 0 to 1.
        fraction: f64,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Refused { count, target } => write!(
                out,
                "the target's machine refused {count} datagrams: no server listens on udp://{target}, \
                 or it stopped during the run; a server may listen on another address of the same name"
            ),
            Self::SendFailed { count } => write!(
                out,
                "the system refused to send {count} requests: the client's machine or network is \
                 out of buffers, or a firewall forbids it"
            ),
            Self::Lost { fraction } => write!(
                out,
                "{:.2} % of the requests were never answered (at most {} % may be): the slowest \
                 ones are missing from the latencies; lower the rate or enlarge the server's queues",
                100.0 * fraction,
                100.0 * LOST_FRACTION_MAX
            ),
            Self::Late { fraction, bound_ns } => write!(
                out,
                "{:.2} % of the requests left more than {} ms late (at most {} % may): the client \
                 had too little processor time, so its own delays were measured; lower the rate or \
                 give the client a core",
                100.0 * fraction,
                bound_ns as f64 / 1e6,
                100.0 * LATE_FRACTION_MAX
            ),
            Self::Failed { fraction } => write!(
                out,
                "{:.2} % of the requests were answered with an error (at most {} % may be): the \
                 latencies are those of the others; check that the requests suit the service",
                100.0 * fraction,
                100.0 * LOST_FRACTION_MAX
            ),
        }
    }
}
