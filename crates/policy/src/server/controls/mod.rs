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
pub use profiler::{DarcRules, Profiler};

use crate::server::Plan;
use crate::{BitSet, ClassId};

/// Learns from what happens and revises the plan. CPU time, not sojourn, is what it learns from.
pub trait Control {
    /// Whether there is a plan to follow at all; without one nothing is reported.
    fn plans(&self) -> bool;

    /// A request was admitted.
    fn arrived(&mut self, now_ns: u64, class: ClassId);

    /// A request left its queue after waiting so long.
    fn dispatched(&mut self, class: ClassId, waited_ns: u64);

    /// A request completed. `true` when the profiling window may close.
    fn finished(&mut self, class: ClassId, cpu_ns: u64) -> bool;

    /// Closes the window if it is due; `true` when the plan changed. `waiting` tells how many
    /// requests of a class are queued.
    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool;

    /// Somebody above the server says what it is to serve; `true` when that is heeded, and the workers are to be
    /// divided anew.
    fn assigned(&mut self, shares: &GroupShares) -> bool;

    /// Workers came or went: divides what is there now.
    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet);

    /// Takes over the rules of one that was just built, and keeps what it has learned: see
    /// [`Ingress::adopt`](crate::server::role::Ingress::adopt). `true` when the workers are to be divided anew by these rules.
    fn adopt(&mut self, fresh: &Self) -> bool;
}
