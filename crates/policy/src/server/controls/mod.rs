//! Controls: what learns from completions and revises the plan.

mod any;

mod darc;
mod darc_stable;
mod fixed;
mod given;
mod partition;
mod profiler;

use crate::server::role::GroupShares;
pub use any::AnyControl;
pub use darc::{Darc, Known};
pub use darc_stable::DarcStable;
pub use fixed::Fixed;
pub use given::GivenShares;
pub use partition::Partition;
pub use profiler::{DarcRules, LEAST_COMPLETIONS, Profiler};

use crate::server::Plan;
use crate::{BitSet, ClassId};

/// Revises the plan. What only some can do is in two traits of their own, of which a control has each or says that it is
/// [without](crate::server::role#what-a-role-can-do-more).
pub trait Control: Learning + FollowsShares {
    /// Whether there is a plan to follow at all; without one nothing is reported.
    fn plans(&self) -> bool;

    /// Workers came or went: divides what is there now.
    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet);

    /// Takes over the rules of one that was just built, and keeps what it has learned: see
    /// [`Ingress::adopt`](crate::server::role::Ingress::adopt). `true` when the workers are to be divided anew by these rules.
    fn adopt(&mut self, fresh: &Self) -> bool;
}

/// A control that learns from what happens: from CPU time, not from sojourn.
pub trait Learning {
    /// A request was admitted.
    fn arrived(&mut self, now_ns: u64, class: ClassId);

    /// A request left its queue after waiting so long.
    fn dispatched(&mut self, class: ClassId, waited_ns: u64);

    /// A request completed. `true` when the profiling window may close.
    fn finished(&mut self, now_ns: u64, class: ClassId, cpu_ns: u64) -> bool;

    /// Closes the window if it is due; `true` when the plan changed. `waiting` tells how many
    /// requests of a class are queued.
    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool;
}

/// Divides the workers by what it was built with.
pub trait WithoutLearning {}

impl<C: WithoutLearning> Learning for C {
    #[inline]
    fn arrived(&mut self, _now_ns: u64, _class: ClassId) {}

    #[inline]
    fn dispatched(&mut self, _class: ClassId, _waited_ns: u64) {}

    #[inline]
    fn finished(&mut self, _now_ns: u64, _class: ClassId, _cpu_ns: u64) -> bool {
        false
    }

    fn close_window(
        &mut self,
        _now_ns: u64,
        _plan: &mut Plan,
        _present: &BitSet,
        _waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        false
    }
}

/// A control that follows the shares that somebody above the server gives.
pub trait FollowsShares {
    /// Somebody above the server says what it is to serve; `true` when that is heeded, and the workers are to be
    /// divided anew.
    fn assigned(&mut self, shares: &GroupShares) -> bool;
}

/// Follows no shares.
pub trait WithoutShares {}

impl<C: WithoutShares> FollowsShares for C {
    fn assigned(&mut self, _shares: &GroupShares) -> bool {
        false
    }
}
