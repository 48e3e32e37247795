//! DARC that never leaves a group overloaded when some plan would not (ours).
//!
//! It plans as DARC does, and asks two questions at every full window rather than only when
//! DARC's triggers fire:
//! 1. Do the measured loads overload a group under DARC's division ([`stability`])? Then
//!    overloaded groups start earlier, just so far that they are not.
//! 2. Did a group's backlog grow all the same? Then the model was wrong about it: it starts one
//!    worker earlier still, down to fixed priority, which is stable whenever anything is.
//!
//! A new plan is checked at once. A plan in force is changed only by what several windows in a row
//! say, on smoothed loads: one window holds few requests of a rare class. Where DARC's plan is
//! stable nothing of this happens and the plan is DARC's.
//!
//! [`stability`]: crate::server::stability

use super::{Control, Darc, DarcRules, Known, Learning, WithoutShares};
use crate::server::reservation::assign;
use crate::server::stability::{GroupLoad, settle, widen};
use crate::server::{Group, Order, Plan};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// Windows in a row that must agree before a plan in force is changed.
const WINDOWS_TO_ACT: u32 = 3;
/// A plan that was widened goes back only where utilisation would be this much lower than it need
/// be, or it would swing.
const MARGIN_TO_NARROW: f64 = 0.05;
/// Windows that the smoothed loads rest on: a rare class shows up a few dozen times in one.
const SMOOTHING_WINDOWS: f64 = 32.0;
/// Requests per worker below which a backlog is no sign of overload, however it grows.
const BACKLOG_PER_WORKER: usize = 4;

/// DARC's control with the stability check.
pub struct DarcStable {
    darc: Darc,
    /// Smoothed load of each class, cores.
    cores: Vec<f64>,
    /// DARC's own division, before any group was made to start earlier.
    published: Vec<Group>,
    /// The division that the present loads call for.
    wanted: Vec<Group>,
    loads: Vec<GroupLoad>,
    /// Windows the smoothed loads rest on, as far as they still count.
    windows: f64,
    /// Windows in a row that wanted another division than the one in force.
    disagreeing: u32,
    /// A backlog overruled the model: its wishes no longer count for this plan.
    overruled: bool,
    /// Per group: requests waiting at the last window's end, and windows in a row it has grown.
    backlog: Vec<usize>,
    growing: Vec<u32>,
}

impl DarcStable {
    /// As [`Darc::new`].
    #[must_use]
    pub fn new(classes: usize, rules: DarcRules, known: Option<&Known>) -> Self {
        let mut darc = Darc::new(classes, rules, known);
        let cores = (0..classes).map(|class| darc.profiler().cores(ClassId(class as u16)));
        Self {
            cores: cores.collect(),
            darc,
            published: Vec::with_capacity(classes),
            wanted: Vec::with_capacity(classes),
            loads: Vec::with_capacity(classes),
            windows: 1.0,
            disagreeing: 0,
            overruled: false,
            backlog: vec![0; classes],
            growing: vec![0; classes],
        }
    }

    /// A plan fresh from DARC: settled at once, with what was measured so far.
    fn take_up(&mut self, plan: &mut Plan, present: &BitSet) {
        self.published.clone_from(&plan.groups);
        (self.disagreeing, self.overruled) = (0, false);
        self.growing.fill(0);
        self.want(present.len(), 0.0);
        self.divide_as_wanted(plan, present);
    }

    /// A plan in force: changed once enough windows want another division. `true` when it was.
    fn reconsider(&mut self, plan: &mut Plan, present: &BitSet) -> bool {
        let disagrees = !self.overruled && self.wants_other(plan, present.len());
        self.disagreeing = if disagrees { self.disagreeing + 1 } else { 0 };
        let due = self.disagreeing >= WINDOWS_TO_ACT;
        if due {
            self.disagreeing = 0;
            self.divide_as_wanted(plan, present);
        }
        due
    }

    /// Whether the loads call for a wider division than the plan's, or allow a narrower one.
    fn wants_other(&mut self, plan: &Plan, workers: usize) -> bool {
        self.want(workers, 0.0);
        let wider = |(wanted, now): (&Group, &Group)| wanted.start < now.start;
        if self.wanted.iter().zip(&plan.groups).any(wider) {
            return true;
        }
        self.want(workers, MARGIN_TO_NARROW);
        self.wanted != plan.groups && !self.wanted.iter().zip(&plan.groups).any(wider)
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
            if self.growing[k] >= WINDOWS_TO_ACT && plan.groups[k].start > 0 {
                widen(&mut plan.groups, k, workers);
                self.growing[k] = 0;
                relieved = true;
            }
        }
        if relieved {
            self.overruled = true;
            assign(plan, self.darc.rules().reservation.spillway, present);
        }
        relieved
    }

    /// DARC's division, settled with `margin` against the smoothed loads.
    fn want(&mut self, workers: usize, margin: f64) {
        let profile = self.darc.profile();
        self.loads.clear();
        for group in &self.published {
            let cores: f64 = group.classes.iter().map(|class| self.cores[class]).sum();
            let rate = |class: usize| self.cores[class] / profile.mean_ns[class].max(1.0);
            let rate: f64 = group.classes.iter().map(rate).sum();
            let mean_ns = if rate > 0.0 { cores / rate } else { 1.0 };
            self.loads.push(GroupLoad { cores, mean_ns });
        }
        self.wanted.clone_from(&self.published);
        if workers > 0 {
            settle(&mut self.wanted, &self.loads, workers, margin);
        }
    }

    fn divide_as_wanted(&self, plan: &mut Plan, present: &BitSet) {
        plan.groups.clone_from(&self.wanted);
        assign(plan, self.darc.rules().reservation.spillway, present);
    }

    fn smooth_loads(&mut self, first: bool) {
        self.windows = if first {
            1.0
        } else {
            (self.windows + 1.0).min(SMOOTHING_WINDOWS)
        };
        let profiler = self.darc.profiler();
        for (class, cores) in self.cores.iter_mut().enumerate() {
            *cores += (profiler.cores(ClassId(class as u16)) - *cores) / self.windows;
        }
    }
}

impl Control for DarcStable {
    fn plans(&self) -> bool {
        true
    }

    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        self.darc.workers_changed(plan, present);
        if plan.order == Order::Rank {
            self.take_up(plan, present);
        }
    }

    /// As DARC, whose plan is then settled anew with the loads as smoothed so far.
    fn adopt(&mut self, fresh: &Self) -> bool {
        self.darc.adopt(&fresh.darc)
    }
}

impl Learning for DarcStable {
    #[inline]
    fn arrived(&mut self, now_ns: u64, class: ClassId) {
        self.darc.profiler().arrived(now_ns, class);
    }

    #[inline]
    fn dispatched(&mut self, class: ClassId, waited_ns: u64) {
        self.darc.dispatched(class, waited_ns);
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, class: ClassId, cpu_ns: u64) -> bool {
        self.darc.finished(now_ns, class, cpu_ns)
    }

    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        let first = plan.order == Order::Arrival;
        let replanned = self.darc.close_window(now_ns, plan, present, &waiting);
        self.smooth_loads(first || replanned);
        if replanned {
            self.take_up(plan, present);
            return true;
        }
        let reconsidered = self.reconsider(plan, present);
        self.relieve(plan, present, waiting) || reconsidered
    }
}

impl WithoutShares for DarcStable {}
