//! The description of a load.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use headway_machine::Clock;
use headway_workload::{Offered, Workload};
use serde_json::{Map, Value};

/// Writes a request's body, which follows the wire header, into the buffer and returns its length.
///
/// It is given the class, the request's index, and room for [`MAX_BODY_BYTES`](crate::MAX_BODY_BYTES).
/// It runs between the time a request is due and its send, so it should take well under a
/// microsecond and must not allocate.
pub type Body = Arc<dyn Fn(u8, u32, &mut [u8]) -> usize + Send + Sync>;

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many requests; a trace may have fewer.
    Requests {
        /// At most 2³².
        count: u64,
    },
    /// The requests of this time.
    Duration {
        /// In nanoseconds, from the start.
        ns: u64,
    },
}

/// The service time by which a request's latency is divided for its slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceTime {
    /// The workload's service time: right for a synthetic service, which works for the requested time.
    #[default]
    Nominal,
    /// The server's execution time, from the reply's header: right for a real service. It counts as at
    /// least 1 ns.
    Reported,
}

/// The threads of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// One thread up to 20 000 requests per second, two above.
    #[default]
    Auto,
    /// One thread, asleep between requests.
    One,
    /// Two threads: one spins and sends, one receives.
    Two,
}

/// The senders whose replies count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplySource {
    /// Only the target: the kernel drops other senders' datagrams.
    #[default]
    Target,
    /// Any sender, with replies matched to requests by index alone: right for a target whose servers answer themselves, such as a rack's
    /// switch in direct mode. A target port without a listener goes unnoticed.
    Anyone,
}

/// An open-loop load on one server.
#[derive(Clone)]
pub struct Load {
    /// The server's address.
    pub target: SocketAddr,
    /// The workload.
    pub workload: Workload,
    /// The type of each class in the wire header, in the workload's order; where it is empty, a class's index is its type.
    pub types: Vec<u8>,
    /// The offered rate or load.
    pub offered: Offered,
    /// The length of the run.
    pub extent: Extent,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Fills the requests; by default they have no body.
    pub body: Body,
    /// Leading fraction of the requests that is sent but not measured, from 0 to below 1.
    pub warm_up: f64,
    /// A request that leaves later than intended by more than this is counted as late, in ns.
    pub late_bound_ns: u64,
    /// How long to wait for replies after the last request, in ns; raised to ten times the
    /// workload's longest service time.
    pub timeout_ns: u64,
    /// The service time for slowdowns.
    pub service_time: ServiceTime,
    /// The senders whose replies count.
    pub replies_of: ReplySource,
    /// The client's threads.
    pub threads: Threads,
    /// Whether the report lists the answers one by one.
    pub keep_answers: bool,
    /// Whether the report has the requests served as a trace.
    pub keep_trace: bool,
    /// The server's policy, for the report; the generator does not know it.
    pub policy: String,
    /// The parameters of the server's policy, for the report.
    pub params: Map<String, Value>,
    /// The clock of the run.
    pub clock: Clock,
    /// The server's workers, for the load and utilisation in the report; at least 1.
    pub workers: usize,
}

impl fmt::Debug for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Load")
            .field("target", &self.target)
            .field("workload", &self.workload.name)
            .field("offered", &self.offered)
            .field("extent", &self.extent)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Load {
    /// A load with no bodies, seed 1, a tenth of warm-up, requests late after 1 ms and lost after 1 s, on the process's clock.
    #[must_use]
    pub fn new(target: SocketAddr, workload: Workload, offered: Offered, extent: Extent) -> Self {
        let workers = match offered {
            Offered::Load { workers, .. } => workers,
            Offered::Rate(_) => 1,
        };
        Self {
            target,
            workload,
            types: Vec::new(),
            offered,
            extent,
            seed: 1,
            body: Arc::new(|_, _, _| 0),
            warm_up: 0.1,
            late_bound_ns: 1_000_000,
            timeout_ns: 1_000_000_000,
            service_time: ServiceTime::Nominal,
            replies_of: ReplySource::Target,
            threads: Threads::Auto,
            keep_answers: false,
            keep_trace: false,
            policy: "unknown".into(),
            params: Map::new(),
            clock: Clock::global(),
            workers,
        }
    }
}
