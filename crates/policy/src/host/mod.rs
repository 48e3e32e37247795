//! The host level: which application gets which core, now?
//!
//! Applications share the cores of one machine. Each has *guaranteed* cores, which nobody takes
//! from it, and *burstable* ones on top, which it has while nobody entitled wants them
//! (Shenango § 4.1.1). An [`Allocator`] moves cores between them; it is a state machine like every
//! policy here, driven by the simulator in virtual time and by an arbiter on real cores.
//!
//! | allocator | looks every | an application gets a core when | it loses one when |
//! |---|---|---|---|
//! | [`Static`] | never | at the start | never |
//! | [`Interval`] | 50 ms | it was loaded over the last period (Arachne) | it was idle over the last period |
//! | [`Shenango`] | 5 µs | something stays queued between two looks | it finds nothing to do, or others are entitled |
//!
//! Call order: events as they happen ([`arrived`](Allocator::arrived),
//! [`released`](Allocator::released)), [`look`](Allocator::look) when its
//! [deadline](Allocator::next_deadline_ns) comes, and after each of them
//! [`poll`](Allocator::poll) until nothing is left. A [`Move::Revoke`] is an order, not a fact: the core
//! changes hands when the engine reports it released. Applications [come](Allocator::admit) and [go](Allocator::retire) between
//! other events.
//!
//! The parts are one concern a file: [`HostTopology`] (hyper-threads), [`Cores`] (who has which core, and the
//! invariants), kthreads (whom to wake), congestion (Algorithm 1), selection (Algorithm 2), [`Patience`] (when to
//! park), [`FlowSteering`] (which kthread gets a packet), [`LanePolling`] (whose packets are read), [`BusyPolling`] (when a
//! daemon without a core of its own sleeps), [`ConfinePace`] (how often a program is confined), [`TurnLooks`] (when a
//! thread gives way), estimates (Arachne's) and targets (towards a given split).

mod busy_polling;
mod confining;
mod congestion;
mod cores;
mod estimate;
mod evictions;
mod fixed;
mod ids;
mod interval;
mod kthreads;
mod moves;
mod parking;
mod polling;
mod selection;
mod shape;
mod shenango;
mod steering;
pub mod systems;
mod targets;
mod topology;
mod turns;

use crate::BitSet;
pub use busy_polling::{BUSY_POLL_NS, BUSY_POLL_WINDOW_NS, BusyPolling};
pub use confining::ConfinePace;
pub use congestion::Congestion;
pub use cores::Cores;
pub use estimate::{Estimate, Estimator};
pub use fixed::{Static, StaticRules};
pub use ids::{AppId, CoreId, KthreadId};
pub use interval::{Interval, IntervalRules};
pub use moves::{HeldCore, Move, Tenant};
pub use parking::{Idleness, Patience};
pub use polling::{FULL_LOOK_TURNS, FullLooks, LanePolling};
pub use shape::{AppKind, AppShape, HostShape, MAX_APPS, MAX_CORES, ShapeError};
pub use shenango::{Shenango, ShenangoRules};
pub use steering::{FlowPlace, FlowSteering, MOST_KTHREADS};
pub use topology::HostTopology;
pub use turns::TurnLooks;

/// How far a queue was consumed and filled. Both only grow: what lies between waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Items ever taken out.
    pub head: u64,
    /// Items ever put in.
    pub tail: u64,
}

/// What a kthread shows of itself, in one cache line (Shenango § 4.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kthread {
    /// Its run queue.
    pub run: Counters,
    /// Its queue of packets that came in.
    pub ingress: Counters,
}

/// What an application did since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Core time spent on work rather than looking for some, ns.
    pub busy_ns: u64,
    /// Integral of the number of runnable threads (or requests) over time, the running ones
    /// included, thread-ns.
    pub runnable_ns: u64,
}

/// What an allocator sees of the applications. No method has a default.
pub trait HostView {
    /// The queues of a kthread.
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread;

    /// The queue that the application's kthreads share; empty where it has none.
    fn shared(&self, app: AppId) -> Counters;

    /// What the application did so far.
    fn usage(&self, app: AppId) -> Usage;

    /// Kthreads that left in the middle of something that no other can go on with, or whose timer is due.
    fn interrupted(&self, app: AppId) -> BitSet;
}

/// Decides which application gets which core. No method has a default, so that a wrapper cannot forget to forward one.
pub trait Allocator {
    /// Whether kthreads that find nothing to do give their cores back; else they keep them, idle,
    /// until they are revoked.
    const PARKS: bool;

    /// An application takes a vacant slot. `holding`: cores that its kthreads run on already, as after the arbiter was started anew; those
    /// that are idle are its own from now on, and others are ignored. May allocate: it is rare.
    ///
    /// # Panics
    /// When it cannot be [admitted](Cores::check_admission).
    fn admit(&mut self, now_ns: u64, app: AppId, shape: AppShape, holding: &[HeldCore]);

    /// The application is gone, and with it its kthreads: its cores are free, and its slot is vacant. May allocate.
    fn retire(&mut self, now_ns: u64, app: AppId);

    /// Something came in for this application. Only matters to one without cores.
    fn arrived(&mut self, now_ns: u64, app: AppId);

    /// The kthread on this core has left it: parked because it found nothing, or because it was
    /// told to go.
    ///
    /// # Panics
    /// When nobody has the core.
    fn released(&mut self, now_ns: u64, core: CoreId);

    /// When to look although nothing happened.
    fn next_deadline_ns(&self) -> Option<u64>;

    /// The deadline came: looks at the applications.
    fn look<V: HostView>(&mut self, now_ns: u64, view: &V);

    /// The next decision; `None` when there is none.
    fn poll(&mut self) -> Option<Move>;

    /// Who has which core.
    fn cores(&self) -> &Cores;
}
