//! Any control, chosen while running: for systems that are put together by name.

use super::{Control, Darc, DarcStable, Fixed, FollowsShares, Learning, Partition};
use crate::server::Plan;
use crate::server::role::GroupShares;
use crate::{BitSet, ClassId};

/// One of the controls. A match costs a predicted branch per call, and all these systems share
/// one compiled type.
pub enum AnyControl {
    /// A plan made once.
    Fixed(Fixed),
    /// Static partitioning.
    Partition(Partition),
    /// DARC.
    Darc(Darc),
    /// DARC with the stability check.
    DarcStable(DarcStable),
}

macro_rules! each {
    ($any:expr, $control:ident => $call:expr) => {
        match $any {
            AnyControl::Fixed($control) => $call,
            AnyControl::Partition($control) => $call,
            AnyControl::Darc($control) => $call,
            AnyControl::DarcStable($control) => $call,
        }
    };
}

impl Control for AnyControl {
    fn plans(&self) -> bool {
        each!(self, control => control.plans())
    }

    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        each!(self, control => control.workers_changed(plan, present));
    }

    fn adopt(&mut self, fresh: &Self) -> bool {
        match (self, fresh) {
            (Self::Fixed(own), Self::Fixed(fresh)) => own.adopt(fresh),
            (Self::Partition(own), Self::Partition(fresh)) => own.adopt(fresh),
            (Self::Darc(own), Self::Darc(fresh)) => own.adopt(fresh),
            (Self::DarcStable(own), Self::DarcStable(fresh)) => own.adopt(fresh),
            // Which control it is does not change: it would forget what it has learned.
            _ => false,
        }
    }
}

impl Learning for AnyControl {
    #[inline]
    fn arrived(&mut self, now_ns: u64, class: ClassId) {
        each!(self, control => control.arrived(now_ns, class));
    }

    #[inline]
    fn dispatched(&mut self, class: ClassId, waited_ns: u64) {
        each!(self, control => control.dispatched(class, waited_ns));
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, class: ClassId, cpu_ns: u64) -> bool {
        each!(self, control => control.finished(now_ns, class, cpu_ns))
    }

    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        each!(self, control => control.close_window(now_ns, plan, present, waiting))
    }
}

impl FollowsShares for AnyControl {
    fn assigned(&mut self, shares: &GroupShares) -> bool {
        each!(self, control => control.assigned(shares))
    }
}
