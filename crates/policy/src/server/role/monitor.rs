//! Which running request is interrupted.

use super::ingress::Ingress;
use super::queues::Backlog;
use crate::server::{Job, WorkerId};

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
    /// As [`Renew`](Self::Renew) after `each_ns`, above 0; and for `holds_ns` it would go on each time, unless a request arrives, is given back or ends
    /// meanwhile: for an engine that would rather not look in vain.
    RenewWhileQuiet {
        /// Until the next look, ns.
        each_ns: u64,
        /// How long the decision holds while nothing happens, ns.
        holds_ns: u64,
    },
    /// It goes on and is not looked at again.
    Leave,
}

/// Decides which running request to interrupt. The timers it asks for are the engine's: a
/// dispatcher that loops looks at its workers' deadlines on each turn, a simulator knows the next.
///
/// One that also interrupts because of events is [`Polling`], one that also looks at the queues now and then is [`Ticking`], and one that goes by
/// what requests say of themselves is [`Heeding`]; any other says that it is [`WithoutPolls`], [`WithoutTicks`] and [`WithoutFeedback`].
///
/// Where no thread has the time to watch, each worker has a clone, which hears of that worker alone.
pub trait Monitor: Polling + Ticking + Heeding + Clone {
    /// Whether it may ever interrupt: an engine that cannot must refuse one that does.
    const PREEMPTS: bool;
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

    /// Takes over the rules of one that was just built, and keeps what it knows of the workers: see [`Ingress::adopt`](super::Ingress::adopt). A time that it
    /// asked for before stays as it was asked for; [`next_deadline_ns`](Ticking::next_deadline_ns) may be another from now on.
    fn adopt(&mut self, fresh: &Self);
}

/// A monitor that interrupts because of what happened, not of time alone.
pub trait Polling {
    /// Whether [`poll`](Self::poll) may ever name something: an engine need not ask otherwise.
    const POLLS: bool;

    /// An interruption that is due because of what happened, not of time. The ingress and the
    /// queues say what waits.
    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        queues: &Q,
    ) -> Option<Preempt>;
}

/// Interrupts at the times alone for which it asked.
pub trait WithoutPolls {}

impl<M: WithoutPolls> Polling for M {
    const POLLS: bool = false;

    #[inline]
    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _ingress: &I,
        _queues: &Q,
    ) -> Option<Preempt> {
        None
    }
}

/// A monitor that acts at times of its own, whatever happens (SYNERGY's `check_wait_queue`).
pub trait Ticking {
    /// When to call [`tick`](Self::tick) although nothing happened.
    fn next_deadline_ns(&self) -> Option<u64>;

    /// The deadline it asked for came. What it returns is to be the queues' [`congested`](Backlog::congested) from now on.
    fn tick<Q: Backlog>(&mut self, now_ns: u64, queues: &Q) -> u64;
}

/// Has no times of its own.
pub trait WithoutTicks {}

impl<M: WithoutTicks> Ticking for M {
    #[inline]
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    fn tick<Q: Backlog>(&mut self, _now_ns: u64, _queues: &Q) -> u64 {
        0
    }
}

/// A monitor that goes by what a request says of itself while it runs (SYNERGY's feedback, § 5.1).
pub trait Heeding {
    /// Whether [`said_long`](Self::said_long) may ever change a time: an engine need not call otherwise.
    const HEEDS: bool;

    /// The request that runs on this worker said that it is long. When to look at it, in ns of service from now on, above 0; `None`: when it was
    /// to be looked at before. A request that said so earlier begins its next assignment as a [`Job`] with that mark.
    fn said_long<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64>;
}

/// What requests say of themselves changes no time.
pub trait WithoutFeedback {}

impl<M: WithoutFeedback> Heeding for M {
    const HEEDS: bool = false;

    #[inline]
    fn said_long<Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _worker: WorkerId,
        _job: &Job,
        _epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        None
    }
}

/// Nobody is ever interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Never;

impl Monitor for Never {
    const PREEMPTS: bool = false;
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

    fn adopt(&mut self, _fresh: &Self) {}
}

impl WithoutPolls for Never {}
impl WithoutTicks for Never {}
impl WithoutFeedback for Never {}
