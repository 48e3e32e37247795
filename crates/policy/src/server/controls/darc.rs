//! DARC: dynamic, application-aware reserved cores (Perséphone § 3).

use super::profiler::{DarcRules, Profiler};
use super::{Control, Learning, WithoutShares};
use crate::server::reservation::{Profile, reserve};
use crate::server::{Order, Plan};
use crate::{BitSet, ClassId};
use alloc::vec::Vec;

/// Means and shares to start with, in place of a window in order of arrival.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// Mean service times, ns, by class.
    pub mean_ns: Vec<f64>,
    /// Shares of the requests, by class.
    pub share: Vec<f64>,
    /// Load of all classes together, in cores; 0 where nobody knows it.
    pub load_cores: f64,
    /// Whether they are the true ones (simulation), rather than what a program declares: then the first window makes way for what it shows, as any.
    pub is_true: bool,
}

/// Revises the reservation when requests wait too long *and* demand has moved.
pub struct Darc {
    rules: DarcRules,
    profiler: Profiler,
    /// Whether the plan rests on what was declared: the first window replaces it, whatever that shows.
    is_declared: bool,
}

impl Darc {
    /// Starts in c-FCFS and reserves after the first window, or at once where a profile is known or declared.
    #[must_use]
    pub fn new(classes: usize, rules: DarcRules, known: Option<&Known>) -> Self {
        let mut profiler = Profiler::new(classes, rules);
        if let Some(Known {
            mean_ns,
            share,
            load_cores,
            ..
        }) = known
        {
            profiler.know(mean_ns, share, *load_cores);
        }
        Self {
            rules,
            profiler,
            is_declared: known.is_some_and(|known| !known.is_true),
        }
    }

    fn replan(&mut self, plan: &mut Plan, present: &BitSet) {
        reserve(
            plan,
            self.profiler.profile(),
            self.rules.reservation,
            present,
        );
        self.profiler.assume();
    }

    pub(super) fn profiler(&mut self) -> &mut Profiler {
        &mut self.profiler
    }

    pub(super) fn profile(&self) -> Profile<'_> {
        self.profiler.profile()
    }

    pub(super) fn rules(&self) -> &DarcRules {
        &self.rules
    }

    /// Before the first window there is no profile: any class on any worker in order of arrival,
    /// UNKNOWN on the spillway.
    fn open(&self, plan: &mut Plan, present: &BitSet) {
        plan.order = Order::Arrival;
        plan.groups.clear();
        let unknown = plan.ranked().len() - 1;
        for class in 0..unknown {
            plan.allow(ClassId(class as u16), BitSet::EMPTY, *present);
        }
        let before = present
            .len()
            .saturating_sub(self.rules.reservation.spillway.max(1));
        let spillway = present.iter().skip(before).collect();
        plan.allow(ClassId(unknown as u16), spillway, BitSet::EMPTY);
    }
}

impl Control for Darc {
    fn plans(&self) -> bool {
        true
    }

    /// Cores may come and go while running (§ 6): the reservation follows at once.
    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        if self.profiler.profile().total_ns() > 0.0 {
            self.replan(plan, present);
        } else {
            self.open(plan, present);
        }
    }

    /// The profile stays. Other groups or another spillway make another plan of it at once.
    fn adopt(&mut self, fresh: &Self) -> bool {
        let replans = self.rules.reservation != fresh.rules.reservation;
        self.rules = fresh.rules;
        self.profiler.adopt(fresh.rules);
        replans
    }
}

impl Learning for Darc {
    fn arrived(&mut self, _now_ns: u64, _class: ClassId) {}

    #[inline]
    fn dispatched(&mut self, class: ClassId, waited_ns: u64) {
        self.profiler.dispatched(class, waited_ns);
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, class: ClassId, cpu_ns: u64) -> bool {
        self.profiler.finished(now_ns, class, cpu_ns)
    }

    /// The first window always ends in a reservation. Later ones do only if (a) some request
    /// waited beyond the target slowdown and (b) demand deviates from what was assumed.
    fn close_window(
        &mut self,
        now_ns: u64,
        plan: &mut Plan,
        present: &BitSet,
        _waiting: impl Fn(ClassId) -> usize,
    ) -> bool {
        let first = plan.order == Order::Arrival || core::mem::take(&mut self.is_declared);
        let delayed = self.profiler.delayed();
        self.profiler.roll(now_ns);
        let due = first || (delayed && self.profiler.deviates());
        if due {
            self.replan(plan, present);
        }
        due
    }
}

impl WithoutShares for Darc {}
