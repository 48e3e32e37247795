//! What a worker runs next.

use super::queues::Queues;
use crate::server::{Job, JobId};

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

/// Decides what one worker runs next. One that ends slices is [`Slicing`], one that learns from what requests say of themselves is [`Hearing`]; any other
/// says that it is [`WithoutSlices`] and [`WithoutHearing`].
pub trait Local: Slicing + Hearing {
    /// Whether it looks beyond its own queue: then work anywhere may concern it. One that does not is [`Next::Idle`] while that is empty,
    /// and an engine need not ask.
    const STEALS: bool;

    /// What to run now that the worker has nothing running.
    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next;

    /// The request was interrupted; the job says how much service it attained so far. `true`: it is
    /// queued again, here. `false`: it goes back to the ingress.
    fn yielded<Q: Queues>(&mut self, now_ns: u64, job: &Job, queues: &mut Q) -> bool;

    /// The request finished after `cpu_ns` of the worker's time.
    fn finished<Q: Queues>(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, queues: &mut Q);

    /// Takes over the rules of one that was just built for the same worker, and keeps what it has learned: see [`Ingress::adopt`](super::Ingress::adopt). A slice
    /// that was given before ends as it was given.
    fn adopt(&mut self, fresh: &Self);
}

/// A worker that ends its own slices (Tiny Quanta).
pub trait Slicing {
    /// Whether it may ever end a slice: an engine that cannot must refuse one that does.
    const SLICES: bool;
    /// Whether a slice is renewed exactly while the own queue is empty, and always for the same time: an engine need not look before
    /// something enters it.
    const RENEWS_ALONE: bool;

    /// The request's slice is over. `Some`: it goes on for so much longer, above 0, since nothing
    /// waits that should run instead. `None`: it yields.
    fn renew<Q: Queues>(&mut self, now_ns: u64, queues: &Q) -> Option<u64>;
}

/// A worker that learns from requests that say, while they run, that they are long (SYNERGY's feedback, § 5.1).
pub trait Hearing {
    /// The request that runs here said that it is long, which it says once. An engine calls it where the monitor is
    /// [`Heeding`](super::Heeding) too.
    fn said_long<Q: Queues>(&mut self, job: &Job, queues: &mut Q);
}

/// What requests say of themselves teaches it nothing.
pub trait WithoutHearing {}

impl<L: WithoutHearing> Hearing for L {
    #[inline]
    fn said_long<Q: Queues>(&mut self, _job: &Job, _queues: &mut Q) {}
}

/// Runs each request until it finishes or somebody else interrupts it.
pub trait WithoutSlices {}

impl<L: WithoutSlices> Slicing for L {
    const SLICES: bool = false;
    const RENEWS_ALONE: bool = false;

    #[inline]
    fn renew<Q: Queues>(&mut self, _now_ns: u64, _queues: &Q) -> Option<u64> {
        None
    }
}
