//! The three roles a server-level system is made of, and what they see of each other.
//!
//! | role | owner in the live server | decides |
//! |---|---|---|
//! | [`Ingress`] | the dispatcher, or nobody (the network steers) | which waiting request goes to which worker, what is shed |
//! | [`Local`] | each worker | what to run next: its own queue, shared queues, others' queues |
//! | [`Monitor`] | the dispatcher or a timer core, or nobody | which running request to interrupt |
//!
//! Call order: an engine reports every event as it happens and then polls until nothing is left.
//! Times never run backwards for one role, and once it was polled its deadline lies ahead. A role never calls another: queues and flags, owned by
//! the engine, are all they share.

mod assignable;

pub use assignable::{GroupShares, Share};

use crate::server::{Job, JobId, Plan, WorkerId};
use crate::{BitSet, ClassId};

/// What the dispatcher runs itself, and for how long (Concord § 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DispatcherSlice {
    /// The request.
    pub job: JobId,
    /// Its longest run, ns, above 0; then the dispatcher interrupts itself.
    pub slice_ns: u64,
}

/// "Hand this request to this worker."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// Who runs it, or queues it.
    pub worker: WorkerId,
    /// What to run.
    pub job: JobId,
}

/// The request's queue was full; it was not accepted and must be answered as shed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shed;

/// Who carries an [`Ingress`] out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A dispatcher thread, which pays for every decision.
    Dispatcher,
    /// The network: RSS, or a kernel's reuse-port group. It costs nothing and decides at once.
    Steering,
    /// Nobody: what arrives, or is given back, is in the shared queue at once, and the workers
    /// help themselves ([`Unplaced`]).
    Nobody,
}

/// Decides which waiting request goes to which worker. What else an ingress says or can do is in three traits of their own;
/// no method has a default, so that a wrapper cannot forget to forward one.
pub trait Ingress: Inspect + DispatcherWork + Assignable {
    /// Who carries this ingress out.
    const OWNER: Owner;

    /// A request came in. On `Err` it was not accepted.
    ///
    /// # Errors
    /// [`Shed`] when its queue is full.
    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed>;

    /// The next decision; `None` when nothing can be dispatched.
    fn poll(&mut self, now_ns: u64) -> Option<Dispatch>;

    /// A worker gave the request back unfinished; the job says how much service it attained so far.
    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: Job);

    /// A worker finished the request, which took it `cpu_ns` of its time.
    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64);

    /// The server gained this worker.
    fn worker_added(&mut self, now_ns: u64, worker: WorkerId);

    /// The server loses this worker: nothing more is sent to it; what it runs, it finishes.
    fn worker_removed(&mut self, now_ns: u64, worker: WorkerId);

    /// Makes room for job ids below `capacity`; for engines in virtual time.
    fn grow(&mut self, capacity: usize);

    /// Takes over the rules of one that was just built, and keeps what it holds and has learned. They differ in parameters that may
    /// change [while serving](crate::spec::Param::while_serving) only.
    fn adopt(&mut self, fresh: &Self);

    /// Requests waiting here.
    fn waiting(&self) -> usize;

    /// Whether something waits that could run on this worker instead of what runs there.
    fn wants(&self, worker: WorkerId) -> bool;
}

/// What monitors and engines may look at.
pub trait Inspect {
    /// The request that would be dispatched after `others` more, in case these leave first; 0 asks for the next. `None` where
    /// there is none or the discipline cannot tell.
    fn peek(&self, others: usize) -> Option<&Job>;

    /// What the ingress knows of a request that it dispatched and that has not finished.
    fn dispatched(&self, job: JobId) -> Option<&Job>;

    /// Who may run what, where the ingress follows such a plan.
    fn plan(&self) -> Option<&Plan>;

    /// How often the plan was revised.
    fn revisions(&self) -> u64;
}

/// A dispatcher that runs requests itself while every worker has enough (Concord § 3.3).
pub trait DispatcherWork {
    /// Whether [`work`](Self::work) may ever name something: an engine need not ask otherwise.
    const WORKS: bool;

    /// What the dispatcher runs itself now that nothing can be dispatched. Until it says
    /// [`worked`](Self::worked) it sees nothing and decides nothing.
    fn work(&mut self, now_ns: u64) -> Option<DispatcherSlice>;

    /// The dispatcher's slice is over; `cpu_ns` when that finished the request.
    fn worked(&mut self, now_ns: u64, job: Job, cpu_ns: Option<u64>);
}

/// A server that somebody above it directs: a rack's control plane, through the server's agent.
pub trait Assignable {
    /// Says which classes the server is to serve on how many workers; policies of their own mind do not heed it.
    fn assign(&mut self, now_ns: u64, shares: &GroupShares);

    /// Takes the oldest request of the class back that waits and was not begun, to be served elsewhere; `None` when there is
    /// none, or the policy cannot.
    fn withdraw(&mut self, class: ClassId) -> Option<JobId>;

    /// Whether a request of the class that came now would start at once; `false` where that cannot be told.
    fn would_start(&self, class: ClassId) -> bool;
}

/// Nobody places requests: they lie in the shared queue (Tardis).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unplaced;

impl Ingress for Unplaced {
    const OWNER: Owner = Owner::Nobody;

    fn arrived(&mut self, _now_ns: u64, _job: Job) -> Result<(), Shed> {
        Ok(())
    }

    fn poll(&mut self, _now_ns: u64) -> Option<Dispatch> {
        None
    }

    fn yielded(&mut self, _now_ns: u64, _worker: WorkerId, _job: Job) {}

    fn finished(&mut self, _now_ns: u64, _worker: WorkerId, _job: JobId, _cpu_ns: u64) {}

    fn worker_added(&mut self, _now_ns: u64, _worker: WorkerId) {}

    fn worker_removed(&mut self, _now_ns: u64, _worker: WorkerId) {}

    fn grow(&mut self, _capacity: usize) {}

    fn adopt(&mut self, _fresh: &Self) {}

    fn waiting(&self) -> usize {
        0
    }

    fn wants(&self, _worker: WorkerId) -> bool {
        false
    }
}

impl Inspect for Unplaced {
    fn peek(&self, _others: usize) -> Option<&Job> {
        None
    }

    fn dispatched(&self, _job: JobId) -> Option<&Job> {
        None
    }

    fn plan(&self) -> Option<&Plan> {
        None
    }

    fn revisions(&self) -> u64 {
        0
    }
}

impl DispatcherWork for Unplaced {
    const WORKS: bool = false;

    fn work(&mut self, _now_ns: u64) -> Option<DispatcherSlice> {
        None
    }

    fn worked(&mut self, _now_ns: u64, _job: Job, _cpu_ns: Option<u64>) {}
}

impl Assignable for Unplaced {
    fn assign(&mut self, _now_ns: u64, _shares: &GroupShares) {}

    fn withdraw(&mut self, _class: ClassId) -> Option<JobId> {
        None
    }

    fn would_start(&self, _class: ClassId) -> bool {
        false
    }
}

/// What a worker does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Run this request, for at most `slice_ns` if the worker is to stop by itself.
    Run {
        /// What to run.
        job: JobId,
        /// Self-preemption after this much time, above 0 (Tiny Quanta); `None` runs on.
        slice_ns: Option<u64>,
    },
    /// Lost a race for another's work; look again.
    Retry,
    /// Nothing to do.
    Idle,
}

/// Outcome of an attempt to steal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steal {
    /// The victim had nothing to take.
    Empty,
    /// Another thief interfered; there may be work.
    Retry,
    /// So many requests are now at the tail of the thief's own queue.
    Batch(usize),
}

/// What waits where, and what workers and monitor tell each other: all of it the engine's. Lengths may be stale.
pub trait Backlog {
    /// How many workers there are.
    fn workers(&self) -> usize;
    /// Length of a worker's queue, running request not included.
    fn len(&self, worker: WorkerId) -> usize;
    /// Consumer and producer counters of one of the server's shared queues, below
    /// [`System::shared_queues`](crate::server::systems::System); both only grow.
    fn shared_counters(&self, queue: usize) -> (u64, u64);
    /// The shared queues that are congested, a bit each: SYNERGY's `check_wait_queue`. 0 until a [`Monitor::tick`] said otherwise.
    fn congested(&self) -> u64;
    /// The mean service time that a worker told of its short requests, ns; 0 before it did.
    fn short_ns(&self, worker: WorkerId) -> u64;
    /// Whether the class is among those that a worker told of as long; none is before it did.
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool;
}

/// The queues as one worker sees them. The live server implements it with lock-free rings, the
/// simulator with lists.
pub trait Queues: Backlog {
    /// The worker who looks.
    fn me(&self) -> WorkerId;
    /// The worker on the other hyper-thread of this one's physical core, where the engine knows one.
    fn sibling(&self) -> Option<WorkerId>;
    /// The head of the own queue.
    fn pop(&mut self) -> Option<JobId>;
    /// Puts a request at the tail of the own queue.
    fn push(&mut self, job: JobId);
    /// Moves at most `max` requests from the head of `victim`'s queue to the own one.
    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal;
    /// The head of one of the shared queues: SYNERGY's preempted longs, a queue a kind; all that arrives under Tardis.
    fn pop_shared(&mut self, queue: usize) -> Option<JobId>;
    /// Puts a request at the tail of a shared queue. `false`: the queue is full, and the request stays with the caller.
    fn push_shared(&mut self, queue: usize, job: JobId) -> bool;
    /// Tells the others this worker's [`short_ns`](Backlog::short_ns).
    fn set_short_ns(&mut self, mean_ns: u64);
    /// Tells the others which classes this worker finds [long](Backlog::is_long).
    fn set_longs(&mut self, longs: BitSet);
}

/// Decides what one worker runs next.
pub trait Local {
    /// Whether it looks beyond its own queue: then work anywhere may concern it. One that does not is [`Next::Idle`] while that is empty,
    /// and an engine need not ask.
    const STEALS: bool;
    /// Whether it may ever end a slice: an engine that cannot must refuse one that does.
    const SLICES: bool;
    /// Whether a slice is renewed exactly while the own queue is empty, and always for the same time: an engine need not look before
    /// something enters it.
    const RENEWS_ALONE: bool;

    /// What to run now that the worker has nothing running.
    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next;

    /// The request's slice is over. `Some`: it goes on for so much longer, above 0, since nothing
    /// waits that should run instead. `None`: it yields.
    fn renew<Q: Queues>(&mut self, now_ns: u64, queues: &Q) -> Option<u64>;

    /// The request was interrupted; the job says how much service it attained so far. `true`: it is
    /// queued again, here. `false`: it goes back to the ingress.
    fn yielded<Q: Queues>(&mut self, now_ns: u64, job: &Job, queues: &mut Q) -> bool;

    /// The request finished after `cpu_ns` of the worker's time.
    fn finished<Q: Queues>(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, queues: &mut Q);

    /// Takes over the rules of one that was just built for the same worker, and keeps what it has learned: see [`Ingress::adopt`]. A slice
    /// that was given before ends as it was given.
    fn adopt(&mut self, fresh: &Self);
}

/// "Interrupt what this worker runs, if it is still that assignment."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preempt {
    /// Whom to interrupt.
    pub worker: WorkerId,
    /// The assignment that is meant: a flag that arrives late must not hit the next request.
    pub epoch: u64,
}

/// What becomes of a request whose time came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreemptionDecision {
    /// It is interrupted.
    Preempt,
    /// It goes on; look again after so much longer, ns, above 0.
    Renew(u64),
    /// It goes on, and so it would each time after so much longer, ns, above 0, until something enters its worker's own
    /// queue: look again then, at the next such time. As [`Renew`](Self::Renew), for an engine that would rather not look in vain.
    RenewAlone(u64),
    /// It goes on and is not looked at again.
    Leave,
}

/// Decides which running request to interrupt. The timers it asks for are the engine's: a
/// dispatcher that loops looks at its workers' deadlines on each turn, a simulator knows the next.
///
/// Where no thread has the time to watch, each worker has a clone, which hears of that worker alone.
pub trait Monitor: Clone {
    /// Whether it may ever interrupt: an engine that cannot must refuse one that does.
    const PREEMPTS: bool;
    /// Whether [`poll`](Self::poll) may ever name something: an engine need not ask otherwise.
    const POLLS: bool;
    /// Whether the dispatcher carries it out (else a core of its own): one that is busy with a
    /// request interrupts late.
    const ON_DISPATCHER: bool;

    /// Whether it interrupts at the times alone for which it asks ([`started`](Self::started), [`expired`](Self::expired)), never in
    /// between: then a worker may keep the time itself, and look for the decision when a time has come.
    fn keeps_times(&self) -> bool;

    /// The worker began its `epoch`-th assignment. When to look at it, in ns of service from now
    /// on, above 0; `None` for never.
    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64>;

    /// The time came that was asked for.
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision;

    /// The worker's assignment ended, whether the request finished or not.
    fn stopped(&mut self, now_ns: u64, worker: WorkerId, epoch: u64);

    /// An interruption that is due because of what happened, not of time. The ingress and the
    /// queues say what waits.
    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        queues: &Q,
    ) -> Option<Preempt>;

    /// When to call [`tick`](Self::tick) although nothing happened.
    fn next_deadline_ns(&self) -> Option<u64>;

    /// The deadline it asked for came. What it returns is to be the queues' [`congested`](Backlog::congested) from now on.
    fn tick<Q: Backlog>(&mut self, now_ns: u64, queues: &Q) -> u64;

    /// Takes over the rules of one that was just built, and keeps what it knows of the workers: see [`Ingress::adopt`]. A time that it
    /// asked for before stays as it was asked for; [`next_deadline_ns`](Self::next_deadline_ns) may be another from now on.
    fn adopt(&mut self, fresh: &Self);
}

/// Nobody is ever interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Never;

impl Monitor for Never {
    const PREEMPTS: bool = false;
    const POLLS: bool = false;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        true
    }

    fn started<Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _worker: WorkerId,
        _job: &Job,
        _epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        None
    }

    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _worker: WorkerId,
        _ingress: &I,
        _queues: &Q,
    ) -> PreemptionDecision {
        PreemptionDecision::Leave
    }

    fn stopped(&mut self, _now_ns: u64, _worker: WorkerId, _epoch: u64) {}

    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _ingress: &I,
        _queues: &Q,
    ) -> Option<Preempt> {
        None
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    fn tick<Q: Backlog>(&mut self, _now_ns: u64, _queues: &Q) -> u64 {
        0
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
