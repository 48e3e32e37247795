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
//!
//! # What a role can do more
//!
//! A role's trait has the methods that every implementation must write. What only some can do is a second trait, which the first
//! requires, so that an engine calls it on any role. An implementation has the second trait, or says in one line that it is without:
//!
//! | role | some can do | the others are |
//! |---|---|---|
//! | [`Ingress`] | [`Inspect`] | [`WithoutInspection`] |
//! | [`Ingress`] | [`DispatcherWork`] | [`WithoutDispatcherWork`] |
//! | [`Ingress`] | [`Assignable`] | [`WithoutAssignment`] |
//! | [`Local`] | [`Slicing`] | [`WithoutSlices`] |
//! | [`Local`] | [`Hearing`] | [`WithoutHearing`] |
//! | [`Monitor`] | [`Polling`] | [`WithoutPolls`] |
//! | [`Monitor`] | [`Ticking`] | [`WithoutTicks`] |
//! | [`Monitor`] | [`Heeding`] | [`WithoutFeedback`] |
//!
//! No method has a default. A wrapper that says neither does not compile, so it cannot hide what it wraps:
//!
//! ```compile_fail,E0277
//! # use headway_policy::server::role::{Local, Next, Queues};
//! # use headway_policy::Job;
//! struct Wrapper<L>(L);
//!
//! // The trait bound `Wrapper<L>: Slicing` is not satisfied.
//! impl<L: Local> Local for Wrapper<L> {
//! #   const STEALS: bool = L::STEALS;
//! #   fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next { self.0.next(now_ns, queues) }
//! #   fn yielded<Q: Queues>(&mut self, now_ns: u64, job: &Job, queues: &mut Q) -> bool { self.0.yielded(now_ns, job, queues) }
//! #   fn finished<Q: Queues>(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, queues: &mut Q) { self.0.finished(now_ns, job, cpu_ns, queues) }
//! #   fn adopt(&mut self, fresh: &Self) { self.0.adopt(&fresh.0) }
//!     // …
//! }
//! ```
//!
//! Parts keep to the same rule.

mod assignable;
mod dispatcher_work;
mod ingress;
mod inspect;
mod local;
mod monitor;
mod queues;

pub use assignable::{Assignable, GroupShares, Share, WithoutAssignment};
pub use dispatcher_work::{DispatcherSlice, DispatcherWork, WithoutDispatcherWork};
pub use ingress::{Dispatch, Ingress, Owner, Shed, Unplaced};
pub use inspect::{Inspect, UrgencyIndex, WithoutInspection};
pub use local::{Hearing, Local, Next, Slicing, WithoutHearing, WithoutSlices};
pub use monitor::{
    Heeding, Monitor, Never, Polling, Preempt, PreemptionDecision, Ticking, WithoutFeedback,
    WithoutPolls, WithoutTicks,
};
pub use queues::{Backlog, Queues, Steal};
