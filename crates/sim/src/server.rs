//! One server in virtual time, fed and stepped by someone else: the part a rack or a host is
//! made of.

use crate::engine::Engine;
use crate::replicated::Replicated;
use crate::simulated::Simulated;
use crate::{Costs, SimError};
use headway_policy::controls::Assignment;
use headway_policy::host::Counters;
use headway_policy::role::{Ingress, Local, Monitor};
use headway_policy::spec::Spec;
use headway_policy::systems::{Replicas, System, Visit};
use headway_policy::{ClassId, Plan, Shape, WorkerId};

/// No event: later than all of them.
pub const NEVER: u64 = u64::MAX;

/// A request on its way to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whatever its sender knows it by; the server does not look at it.
    pub tag: u64,
    /// From when its latency counts, ns.
    pub arrived_ns: u64,
    /// Its service time without any cost of the machinery, ns.
    pub service_ns: u64,
    /// Hash of its flow.
    pub flow: u32,
    /// What it is.
    pub class: u16,
    /// What the server takes it for.
    pub taken_for: u16,
    /// Whether it is measured.
    pub counted: bool,
}

/// What a server tells whoever feeds it.
pub trait Sink {
    /// The request is done.
    fn finished(&mut self, now_ns: u64, request: &Request);
    /// The request was shed.
    fn shed(&mut self, now_ns: u64, request: &Request);
    /// The server's plan changed.
    fn replanned(&mut self, _now_ns: u64, _plan: Option<&Plan>) {}
}

/// How a request left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// When, ns.
    pub at_ns: u64,
    /// Which.
    pub request: Request,
    /// Whether it was shed instead of served.
    pub shed: bool,
}

impl Sink for Vec<Left> {
    #[inline]
    fn finished(&mut self, now_ns: u64, request: &Request) {
        self.push(Left {
            at_ns: now_ns,
            request: *request,
            shed: false,
        });
    }

    #[inline]
    fn shed(&mut self, now_ns: u64, request: &Request) {
        self.push(Left {
            at_ns: now_ns,
            request: *request,
            shed: true,
        });
    }
}

/// Sums over a server's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Worker time spent on requests and on the machinery's costs, ns.
    pub busy_ns: u64,
    /// Worker time idle while some request waited, ns; in a rack, anywhere in it.
    pub wasted_ns: u64,
    /// Requests interrupted.
    pub preemptions: u64,
    /// Time the dispatcher ran requests itself, ns.
    pub dispatcher_ns: u64,
}

/// A server under some policy. Times handed in never run backwards, and never past
/// [`next_ns`](Self::next_ns) without the steps in between.
pub trait Server: Send {
    /// When something happens next of its own accord; [`NEVER`] when nothing does.
    fn next_ns(&self) -> u64;

    /// Carries out what happens next; what leaves is appended to `left`.
    fn step(&mut self, left: &mut Vec<Left>);

    /// A request arrives.
    fn arrive(&mut self, now_ns: u64, request: Request, left: &mut Vec<Left>);

    /// The server gains or loses a worker. A worker that is lost finishes what it runs and has
    /// queued, unless it is [revoked](Self::revoke).
    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, left: &mut Vec<Left>);

    /// The server loses a worker at once: what it runs is interrupted and queued again. What lies
    /// in its queue stays there, for others to steal, until it is back.
    fn revoke(&mut self, now_ns: u64, worker: WorkerId, left: &mut Vec<Left>);

    /// Somebody above the server says what it is to serve; policies of their own mind do not heed it.
    fn assign(&mut self, now_ns: u64, assignment: &Assignment, left: &mut Vec<Left>);

    /// Takes all requests of a class back that wait and were not begun, the oldest first; none where the policy cannot.
    fn withdraw(&mut self, class: u16, withdrawn: &mut Vec<Request>);

    /// Whether the request, if it came now, would start at once; `false` where that cannot be told.
    fn would_start(&self, request: &Request) -> bool;

    /// Workers that are there and run nothing.
    fn idle(&self) -> usize;

    /// Requests that wait, at the ingress or at workers.
    fn waiting(&self) -> usize;

    /// Requests in the server, those that run included.
    fn in_flight(&self) -> usize;

    /// Requests waiting in one worker's own queue.
    fn queued_at(&self, worker: WorkerId) -> usize;

    /// How far the worker's own queue was consumed and filled, as a host looks at it.
    fn counters_at(&self, worker: WorkerId) -> Counters;

    /// The same for what all workers share: the ingress's queues and the shared one. Where those are
    /// not first come first served, the head says how many left, not which.
    fn central_counters(&self) -> Counters;

    /// Whether the worker is there and runs nothing.
    fn is_idle(&self, worker: WorkerId) -> bool;

    /// What was done so far.
    fn work(&self) -> Work;

    /// Who may run what, where the policy follows such a plan.
    fn plan(&self) -> Option<&Plan>;
}

/// A server that does as a rack's control plane says: c-FCFS, or DARC with the reservation it is given.
#[must_use]
pub fn instructed(shape: &Shape, costs: Costs) -> Box<dyn Server> {
    let system = headway_policy::systems::given(shape);
    Box::new(Engine::new(system, shape, costs))
}

/// A server of this shape under the policy a spec names; `queue_limit` is that of the shape.
///
/// # Errors
/// [`SimError`] when there is no such policy or a parameter is out of range.
pub fn server(spec: &Spec, shape: &Shape, costs: Costs) -> Result<Box<dyn Server>, SimError> {
    struct Build<'a>(&'a Shape, Costs);
    impl Visit for Build<'_> {
        type Output = Box<dyn Server>;
        fn visit<I, L, M>(self, system: System<I, L, M>) -> Box<dyn Server>
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            Box::new(Engine::new(system, self.0, self.1))
        }

        fn visit_replicas<I, L, M>(self, replicas: Replicas<I, L, M>) -> Box<dyn Server>
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            Box::new(Replicated::new(replicas, self.0, self.1))
        }
    }
    Ok(headway_policy::systems::with(
        spec,
        shape,
        Build(shape, costs),
    )?)
}

impl<T: Simulated + Send> Server for T {
    #[inline]
    fn next_ns(&self) -> u64 {
        Simulated::next_ns(self)
    }

    fn step(&mut self, left: &mut Vec<Left>) {
        Simulated::step(self, left);
    }

    fn arrive(&mut self, now_ns: u64, request: Request, left: &mut Vec<Left>) {
        Simulated::arrive(self, now_ns, request, left);
    }

    fn set_worker(&mut self, now_ns: u64, worker: WorkerId, present: bool, left: &mut Vec<Left>) {
        Simulated::set_worker(self, now_ns, worker, present, left);
    }

    fn revoke(&mut self, now_ns: u64, worker: WorkerId, left: &mut Vec<Left>) {
        Simulated::revoke(self, now_ns, worker, left);
    }

    fn assign(&mut self, now_ns: u64, assignment: &Assignment, left: &mut Vec<Left>) {
        Simulated::assign(self, now_ns, assignment, left);
    }

    fn withdraw(&mut self, class: u16, withdrawn: &mut Vec<Request>) {
        Simulated::withdraw(self, ClassId(class), withdrawn);
    }

    fn would_start(&self, request: &Request) -> bool {
        Simulated::would_start(self, request)
    }

    fn idle(&self) -> usize {
        Simulated::idle(self)
    }

    fn waiting(&self) -> usize {
        Simulated::waiting(self)
    }

    fn in_flight(&self) -> usize {
        Simulated::in_flight(self)
    }

    fn queued_at(&self, worker: WorkerId) -> usize {
        Simulated::queued_at(self, worker)
    }

    fn counters_at(&self, worker: WorkerId) -> Counters {
        Simulated::counters_at(self, worker)
    }

    fn central_counters(&self) -> Counters {
        Simulated::central_counters(self)
    }

    fn is_idle(&self, worker: WorkerId) -> bool {
        Simulated::is_idle(self, worker)
    }

    fn work(&self) -> Work {
        Simulated::work(self)
    }

    fn plan(&self) -> Option<&Plan> {
        Simulated::plan(self)
    }
}
