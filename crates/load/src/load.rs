//! What to send, and sending it.

use std::fmt;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use headway_machine::Clock;
use headway_workload::{Offered, Workload};
use serde_json::{Map, Value};

use crate::client::{Gauge, Harvest, run_on_one_thread, run_on_two_threads};
use crate::error::LoadError;
use crate::ledger::Departures;
use crate::plan::Plan;
use crate::report::{LoadReport, Outcome};
use crate::sender::Run;
use crate::socket::ClientSocket;

/// Up to this rate one thread that sleeps between requests keeps its times.
const ONE_THREAD_MAX_RPS: f64 = 20_000.0;

/// Time for the threads to start before the first request is due.
const LEAD_NS: u64 = 2_000_000;

/// A reply may take this many times the longest service time before it counts as lost.
const TIMEOUT_SERVICES: u64 = 10;

/// How often the caller hears of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Writes the body of a request, what follows the wire header, into the buffer and returns its length.
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
    /// The requests of this long.
    Duration {
        /// In nanoseconds, from the start.
        ns: u64,
    },
}

/// What a request's latency is divided by for its slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceTime {
    /// The workload's: right for a service that does as told, such as a synthetic one.
    #[default]
    Nominal,
    /// What the server says the request took, from the reply's header: right for a real service.
    /// Counted as at least 1 ns.
    Reported,
}

/// The threads of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// One up to 20 000 requests per second, two above.
    #[default]
    Auto,
    /// One, asleep between requests.
    One,
    /// One that spins and sends, one that receives.
    Two,
}

/// An open-loop load on one server.
#[derive(Clone)]
pub struct Load {
    /// The server's address.
    pub target: SocketAddr,
    /// What is sent.
    pub workload: Workload,
    /// The type of each class in the wire header, in the workload's order; where it is empty, a class's index is its type.
    pub types: Vec<u8>,
    /// At which rate.
    pub offered: Offered,
    /// For how long.
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
    /// What slowdown is relative to.
    pub service_time: ServiceTime,
    /// How many threads send and receive.
    pub threads: Threads,
    /// Whether the report lists the answers one by one.
    pub keep_answers: bool,
    /// Whether the report has the requests served as a trace.
    pub keep_trace: bool,
    /// The server's policy, for the report; the generator does not know it.
    pub policy: String,
    /// The parameters of the server's policy, for the report.
    pub params: Map<String, Value>,
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

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Requests that will be sent.
    pub planned: u64,
    /// Requests sent so far.
    pub sent: u64,
    /// Of these, the ones answered.
    pub answered: u64,
}

impl Load {
    /// A load with no bodies, seed 1, a tenth of warm-up, requests late after 1 ms and lost after 1 s.
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
            threads: Threads::Auto,
            keep_answers: false,
            keep_trace: false,
            policy: "unknown".into(),
            params: Map::new(),
            workers,
        }
    }

    /// Sends the load and waits for the replies. Meanwhile `progress` is called ten times a second,
    /// on the calling thread; when it breaks, nothing more is sent, and what was sent is reported.
    ///
    /// # Errors
    /// [`LoadError`] when nothing could be sent. A server that does not answer is no error: its
    /// requests are lost.
    ///
    /// # Panics
    /// When the workload fails its check, the rate is not a finite number above 0, or the body is
    /// longer than its buffer.
    pub fn run(
        &self,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<LoadReport, LoadError> {
        if !(0.0..1.0).contains(&self.warm_up) {
            let fraction = self.warm_up;
            return Err(LoadError::WarmUp { fraction });
        }
        let plan = Plan::draw(self)?;
        let socket = ClientSocket::connect(self.target)?;
        let departures = Departures::new(plan.requests.len());
        let clock = Clock::global();
        let run = Run {
            plan: &plan.requests,
            departures: &departures,
            socket: &socket,
            clock,
            start_ns: clock.now_ns() + LEAD_NS,
        };
        let gauge = Gauge::default();
        let harvest = thread::scope(|scope| {
            let caller = thread::current();
            let (gauge, plan) = (&gauge, &plan);
            let client = scope.spawn(move || {
                let harvest = self.send(run, gauge, plan);
                caller.unpark();
                harvest
            });
            watch(run, gauge, &client, &mut progress);
            client.join()
        });
        let harvest = harvest.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcome = Outcome::new(self, &plan, run, harvest);
        Ok(outcome.report())
    }

    fn send<'a>(&'a self, run: Run<'a>, gauge: &Gauge, plan: &Plan) -> Harvest<'a> {
        let two = match self.threads {
            Threads::Auto => plan.rate_rps() > ONE_THREAD_MAX_RPS,
            Threads::One => false,
            Threads::Two => true,
        };
        let timeout_ns = plan.longest_service_ns().saturating_mul(TIMEOUT_SERVICES);
        let timeout_ns = self.timeout_ns.max(timeout_ns);
        let client = if two {
            run_on_two_threads
        } else {
            run_on_one_thread
        };
        client(run, &self.body, gauge, timeout_ns)
    }
}

/// Tells the caller of progress until the client is done.
fn watch<T>(
    run: Run<'_>,
    gauge: &Gauge,
    client: &ScopedJoinHandle<'_, T>,
    progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
) {
    while !client.is_finished() {
        thread::park_timeout(PROGRESS_INTERVAL);
        let now = Progress {
            planned: run.plan.len() as u64,
            sent: run.departures.count(),
            answered: gauge.answered.load(Ordering::Relaxed),
        };
        if progress(&now).is_break() {
            run.departures.stop();
        }
    }
}
