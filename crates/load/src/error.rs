//! Why a load could not be generated at all.

use std::io;
use std::net::SocketAddr;

/// Why no load was generated.
#[derive(thiserror::Error)]
pub enum LoadError {
    /// The workload and the extent together make no request.
    #[error(
        "workload {workload:?} has no request within the extent asked for; ask for a longer \
         duration, a higher rate or more requests"
    )]
    Empty {
        /// The workload's name.
        workload: String,
    },
    /// More requests than the wire header can number.
    #[error(
        "a run has at most {max} requests, since the wire header numbers them in 32 bits; lower \
         the rate or the duration"
    )]
    TooMany {
        /// The limit.
        max: u64,
    },
    /// More classes than the wire header's type byte can tell apart.
    #[error(
        "workload {workload:?} has {found} classes, and the wire header's type byte tells 255 \
         apart; merge some"
    )]
    TooManyClasses {
        /// The workload's name.
        workload: String,
        /// Its classes.
        found: usize,
    },
    /// A service time that the wire header cannot ask for.
    #[error(
        "workload {workload:?} has a service of {asked}, and the wire header asks for at most {most}, \
         in 32 bits of ns; shorten it, or divide by the service times that the server reports"
    )]
    ServiceTooLong {
        /// The workload's name.
        workload: String,
        /// The longest service time drawn.
        asked: String,
        /// The longest that can be asked for.
        most: String,
    },
    /// Some classes have a type in the wire header, others none.
    #[error(
        "workload {workload:?} has {found} classes and {types} wire types for them; give one to each, or to none"
    )]
    Types {
        /// The workload's name.
        workload: String,
        /// Its classes.
        found: usize,
        /// Types given.
        types: usize,
    },
    /// The warm-up is not a fraction that leaves something to measure.
    #[error("a warm-up of {fraction} leaves nothing to measure; use at least 0 and less than 1")]
    WarmUp {
        /// The fraction asked for.
        fraction: f64,
    },
    /// The system refused a socket.
    #[error("cannot send to udp://{target}: {operation}: {source}")]
    Socket {
        /// The server's address.
        target: SocketAddr,
        /// The system call that failed.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

headway_words::debug_is_display!(LoadError);
