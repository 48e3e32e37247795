//! Controls: what learns from completions and revises the plan.

mod any;
mod darc;
mod darc_stable;
mod fixed;
mod given;
mod partition;
mod profiler;

pub use any::AnyControl;
pub use darc::{Darc, DarcRules, Known};
pub use darc_stable::DarcStable;
pub use fixed::Fixed;
pub use given::Given;
pub use partition::Partition;
pub use profiler::Profiler;

use crate::rack::Duty;
use crate::{BitSet, ClassId, Plan};

/// Learns from what happens and revises the plan. CPU time, not sojourn, is what it learns from.
pub trait Control {
    /// Whether there is a plan to follow at all; without one nothing is reported.
    fn plans(&self) -> bool {
        true
    }

    /// A request was admitted.
    fn arrived(&mut self, _now_ns: u64, _class: ClassId) {}

    /// A request left its queue after waiting so long.
    fn dispatched(&mut self, _class: ClassId, _waited_ns: u64) {}

    /// A request completed. `true` when the profiling window may close.
    fn finished(&mut self, _class: ClassId, _cpu_ns: u64) -> bool {
        false
    }

    /// Closes the window if it is due; `true` when the plan changed. `waiting` tells how many
    /// requests of a class are queued.
    fn close_window(
        &mut self,
        _now_ns: u64,
        _plan: &mut Plan,
        _present: &BitSet,
        _waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        false
    }

    /// A rack's control plane says what the server is to serve; `true` when that is heeded, and the workers are to be
    /// divided anew.
    fn instructed(&mut self, _duty: &Duty) -> bool {
        false
    }

    /// Workers came or went: divides what is there now.
    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet);
}
