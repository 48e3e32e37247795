//! DARC that never leaves a group overloaded when some plan would not (ours).
//!
//! It plans as DARC does and then asks two questions, at every full window rather than only when
//! DARC's triggers fire:
//! 1. Do the loads measured in this window overload a group under the plan ([`stability`])? Then
//!    overloaded groups start earlier until they are not.
//! 2. Did a group's backlog grow all the same, window after window? Then the model was wrong
//!    about it: it starts one worker earlier still, down to fixed priority, which is stable
//!    whenever anything is.
//!
//! Where DARC's plan is stable neither happens and the plan is DARC's.

use super::{Control, Darc, DarcRules, Known};
use crate::reservation::assign;
use crate::stability::{GroupLoad, overloads, settle, widen};
use crate::{BitSet, ClassId, Order, Plan};
use alloc::vec;
use alloc::vec::Vec;

/// Windows in a row over which a backlog must grow before the model is overruled.
const GROWING_WINDOWS: u32 = 3;
/// Requests per worker below which a backlog is no sign of overload, however it grows.
const BACKLOG_PER_WORKER: usize = 4;

/// DARC's control with the stability check.
pub struct DarcStable {
    darc: Darc,
    /// Loads of the groups of the plan; sized for the most there can be.
    loads: Vec<GroupLoad>,
    backlog: Vec<usize>,
    growing: Vec<u32>,
}

impl DarcStable {
    /// As [`Darc::new`].
    #[must_use]
    pub fn new(classes: usize, rules: DarcRules, known: Option<&Known>) -> Self {
        Self {
            darc: Darc::new(classes, rules, known),
            loads: Vec::with_capacity(classes),
            backlog: vec![0; classes],
            growing: vec![0; classes],
        }
    }

    /// Settles the plan against the measured loads; `true` when that moved a worker.
    fn settle(&mut self, plan: &mut Plan, present: &BitSet) -> bool {
        let workers = present.len();
        self.measure(plan);
        if workers == 0 || !overloads(&plan.groups, &self.loads, workers) {
            return false;
        }
        settle(plan, &self.loads, workers);
        assign(plan, self.darc.rules().reservation.spillway, present);
        true
    }

    fn measure(&mut self, plan: &Plan) {
        let profiler = self.darc.profiler();
        self.loads.clear();
        for group in &plan.groups {
            let classes = || group.classes.iter().map(|class| ClassId(class as u16));
            let cores: f64 = classes().map(|class| profiler.cores(class)).sum();
            let rate: f64 = classes()
                .map(|class| {
                    profiler.cores(class) / profiler.profile().mean_ns[class.index()].max(1.0)
                })
                .sum();
            let mean_ns = if rate > 0.0 { cores / rate } else { 1.0 };
            self.loads.push(GroupLoad { cores, mean_ns });
        }
    }

    /// Widens the groups whose backlog grew for too long; `true` when there was one.
    fn relieve(
        &mut self,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        let workers = present.len();
        let mut relieved = false;
        for k in 0..plan.groups.len() {
            let classes = plan.groups[k].classes;
            let backlog: usize = classes
                .iter()
                .map(|class| waiting(ClassId(class as u16)))
                .sum();
            let grows = backlog > self.backlog[k] && backlog > BACKLOG_PER_WORKER * workers;
            self.growing[k] = if grows { self.growing[k] + 1 } else { 0 };
            self.backlog[k] = backlog;
            if self.growing[k] >= GROWING_WINDOWS && k > 0 && plan.groups[k].start > 0 {
                widen(plan, k, workers);
                self.growing[k] = 0;
                relieved = true;
            }
        }
        if relieved {
            assign(plan, self.darc.rules().reservation.spillway, present);
        }
        relieved
    }
}

impl Control for DarcStable {
    const PLANS: bool = true;

    #[inline]
    fn arrived(&mut self, _now_ns: u64, class: ClassId) {
        self.darc.profiler().arrived(class);
    }

    #[inline]
    fn dispatched(&mut self, class: ClassId, waited_ns: u64) {
        self.darc.dispatched(class, waited_ns);
    }

    #[inline]
    fn finished(&mut self, class: ClassId, cpu_ns: u64) -> bool {
        self.darc.finished(class, cpu_ns)
    }

    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        let replanned = self.darc.close_window(now_ns, plan, present, &waiting);
        if replanned {
            self.growing.fill(0);
        }
        let settled = self.settle(plan, present);
        let relieved = !replanned && self.relieve(plan, present, waiting);
        replanned || settled || relieved
    }

    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        self.darc.workers_changed(plan, present);
        if plan.order == Order::Rank {
            self.settle(plan, present);
        }
    }
}
