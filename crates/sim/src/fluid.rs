//! A server that shares its workers among all requests at once.
//!
//! All present requests are served at the same rate. So one number orders all events: the virtual
//! service `v`, which a request present from the beginning would have received. A request that
//! arrives at `v` and needs `s` is done at `v + s`, whatever other requests come or go. An event
//! costs one heap operation.

use crate::arrivals::RequestStream;
use crate::experiment::Experiment;
use crate::measures::Measures;
use crate::outcome::Outcome;
use crate::server::{NEVER, SimRequest, Sink, Work};
use headway_policy::BitSet;
use headway_policy::server::fluid::ProcessorSharing;
use headway_policy::spec::Params;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A request in service. The order is reversed: the request with the least `done_at` is the greatest, as the max-heap needs it.
struct Sharing {
    /// Virtual service at which it is done, ns.
    done_at: f64,
    /// On a tie the earlier arrival is done first.
    index: u64,
    request: SimRequest,
}

impl PartialEq for Sharing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Sharing {}

impl PartialOrd for Sharing {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sharing {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_service = other.done_at.total_cmp(&self.done_at);
        by_service.then(other.index.cmp(&self.index))
    }
}

/// The server.
struct Fluid {
    policy: ProcessorSharing,
    present: BitSet,
    workers: usize,
    sharing: BinaryHeap<Sharing>,
    /// Virtual service since the server was last empty, ns.
    virtual_ns: f64,
    now_ns: u64,
    work: Work,
}

impl Fluid {
    fn new(policy: ProcessorSharing, workers: usize) -> Self {
        Self {
            policy,
            present: BitSet::range(0, workers),
            workers,
            sharing: BinaryHeap::new(),
            virtual_ns: 0.0,
            now_ns: 0,
            work: Work::default(),
        }
    }

    /// When the first request is done, to the next whole ns.
    #[inline]
    fn next_ns(&self) -> u64 {
        let Some(first) = self.sharing.peek() else {
            return NEVER;
        };
        if self.workers == 0 {
            return NEVER;
        }
        let rate = self.policy.rate(self.workers, self.sharing.len());
        let left_ns = (first.done_at - self.virtual_ns).max(0.0) / rate;
        self.now_ns + libm::ceil(left_ns) as u64
    }

    #[inline]
    fn advance_to(&mut self, now_ns: u64) {
        let (requests, elapsed_ns) = (self.sharing.len(), now_ns - self.now_ns);
        self.now_ns = now_ns;
        if requests > 0 {
            let rate = self.policy.rate(self.workers, requests);
            self.virtual_ns += elapsed_ns as f64 * rate;
            self.work.busy_ns += elapsed_ns * self.workers.min(requests) as u64;
        }
    }

    #[inline]
    fn arrive(&mut self, request: SimRequest) {
        self.advance_to(request.arrived_ns);
        if self.sharing.is_empty() {
            // Restart at 0: rounding errors do not accumulate over a run.
            self.virtual_ns = 0.0;
        }
        self.sharing.push(Sharing {
            done_at: self.virtual_ns + request.service_ns as f64,
            index: request.tag,
            request,
        });
    }

    #[inline]
    fn complete(&mut self, at_ns: u64, sink: &mut impl Sink) {
        self.advance_to(at_ns);
        if let Some(first) = self.sharing.pop() {
            sink.finished(at_ns, &first.request);
        }
    }

    fn set_worker(&mut self, at_ns: u64, worker: usize, present: bool) {
        self.advance_to(at_ns);
        self.present.set(worker, present);
        self.workers = self.present.len();
    }
}

/// Runs an experiment under processor sharing: an ideal, without any cost.
pub(crate) fn run(experiment: &Experiment) -> Outcome {
    let mut server = Fluid::new(ProcessorSharing, experiment.workers);
    let mut measures = Measures::new(experiment);
    let mut arrivals = RequestStream::new(experiment);
    let mut changes = experiment.core_changes.iter().peekable();
    loop {
        let change_ns = changes.peek().map_or(NEVER, |change| change.at_ns);
        let (done_ns, arrival_ns) = (server.next_ns(), arrivals.next_ns());
        let next_ns = done_ns.min(arrival_ns).min(change_ns);
        if next_ns == NEVER {
            break;
        } else if done_ns == next_ns {
            server.complete(done_ns, &mut measures);
        } else if change_ns == next_ns {
            if let Some(change) = changes.next() {
                server.set_worker(change.at_ns, change.worker.index(), change.present);
            }
        } else if let Some(request) = arrivals.take() {
            measures.arrived(&request);
            server.arrive(request);
        }
    }
    measures.totals.cut_off = arrivals.is_cut_off();
    measures.into_server_outcome(server.work, None, ProcessorSharing::NAME, &Params::new())
}
