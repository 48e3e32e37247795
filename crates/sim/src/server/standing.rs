//! The interfaces of a server in virtual time, a trait for each purpose. No method has a default: a server that lacks one
//! does not compile.

use super::request::{Left, SimRequest, Sink, Work};
use headway_policy::host::Counters;
use headway_policy::server::role::GroupShares;
use headway_policy::{ClassId, Plan, WorkerId};
use headway_report::schedule::Slice;
use std::ops::Range;

/// The state of a server, for its driver.
pub trait Standing {
    /// The time of the server's next event; [`NEVER`](super::NEVER) when there is none.
    fn next_ns(&self) -> u64;

    /// The time of the next event of a request; [`NEVER`](super::NEVER) when only deadlines remain.
    fn next_work_ns(&self) -> u64;

    /// Workers that are present and idle.
    fn idle(&self) -> usize;

    /// Requests that wait, at the ingress or at workers.
    fn waiting(&self) -> usize;

    /// Requests in the server, including the running ones.
    fn in_flight(&self) -> usize;

    /// Sums over the server's life so far.
    fn work(&self) -> Work;

    /// The workers that each class may use, where the policy follows a plan.
    fn plan(&self) -> Option<&Plan>;
}

/// A server's workers and queues, as a host's allocator observes them.
pub trait WorkerView {
    /// Whether the worker is present and idle.
    fn is_idle(&self, worker: WorkerId) -> bool;

    /// Requests ever taken from and put into the worker's own queue.
    fn counters_at(&self, worker: WorkerId) -> Counters;

    /// The same counters for the queues that all workers share: the ingress's and the shared queue. Under an
    /// order other than first come first served, the head counts departures without identifying them.
    fn central_counters(&self) -> Counters;
}

/// A server of a rack, as the switch and the control plane's agent use it.
pub trait Directed {
    /// Takes back all waiting requests of a class that have not begun, the oldest first; none where the policy cannot.
    fn withdraw(&mut self, class: ClassId, withdrawn: &mut Vec<SimRequest>);

    /// Whether the request would start at once if it arrived now; `false` where that is unknown.
    fn would_start(&self, request: &SimRequest) -> bool;
}

/// A server under some policy. Times handed in never run backwards, and never past
/// [`next_ns`](Standing::next_ns) without the steps in between.
pub trait SimulatedServer: Standing + WorkerView + Directed + Send {
    /// Carries out the next event; departing requests are appended to `left`.
    fn step(&mut self, left: &mut Vec<Left>);

    /// A request arrives.
    fn arrive(&mut self, now_ns: u64, request: SimRequest, left: &mut Vec<Left>);

    /// The server gains or loses a worker. A worker that is lost finishes its running request, unless it is [revoked](Self::revoke).
    /// The requests in its queue go to the other workers where these steal; else it finishes them too.
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, left: &mut Vec<Left>);

    /// The server loses a worker at once. The worker's running request is interrupted and queued again.
    /// The requests in its queue stay there until it is back; other workers may steal them.
    fn revoke(&mut self, now_ns: u64, worker: WorkerId, left: &mut Vec<Left>);

    /// Sets the worker on the other hyper-thread of this worker's physical core. The host calls it.
    fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>);

    /// Assigns the groups that the server is to serve. The rack's control plane calls it; only the rack's own server policy obeys.
    fn assign(&mut self, now_ns: u64, shares: &GroupShares, left: &mut Vec<Left>);
}

/// A [`SimulatedServer`] generic over its sink's type: a request's path then has no indirect call. `SimulatedServer`
/// documents the methods of the same names.
pub(crate) trait Simulated: Standing + WorkerView + Directed {
    fn step(&mut self, sink: &mut impl Sink);
    fn arrive(&mut self, now_ns: u64, request: SimRequest, sink: &mut impl Sink);
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, sink: &mut impl Sink);
    fn revoke(&mut self, now_ns: u64, worker: WorkerId, sink: &mut impl Sink);
    fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>);
    fn assign(&mut self, now_ns: u64, shares: &GroupShares, sink: &mut impl Sink);
}

/// A server that can record its schedule.
pub(crate) trait Recorded {
    /// Records the slices within the window, ns, if there is one.
    fn record(&mut self, window: Option<Range<u64>>);

    /// The slices recorded so far, in the order of their ends.
    fn take_slices(&mut self) -> Vec<Slice>;
}

impl<T: Simulated + Send> SimulatedServer for T {
    fn step(&mut self, left: &mut Vec<Left>) {
        Simulated::step(self, left);
    }

    fn arrive(&mut self, now_ns: u64, request: SimRequest, left: &mut Vec<Left>) {
        Simulated::arrive(self, now_ns, request, left);
    }

    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, left: &mut Vec<Left>) {
        Simulated::set_worker(self, now_ns, worker, present, left);
    }

    fn revoke(&mut self, now_ns: u64, worker: WorkerId, left: &mut Vec<Left>) {
        Simulated::revoke(self, now_ns, worker, left);
    }

    fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>) {
        Simulated::set_sibling(self, worker, sibling);
    }

    fn assign(&mut self, now_ns: u64, shares: &GroupShares, left: &mut Vec<Left>) {
        Simulated::assign(self, now_ns, shares, left);
    }
}
