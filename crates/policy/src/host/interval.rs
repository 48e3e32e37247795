//! An allocator that re-plans every so often from what it saw: Arachne's, and with other periods any
//! allocator of the millisecond kind (§ 2 of the Shenango paper).

use super::estimate::{Estimate, Estimator};
use super::targets::Targets;
use super::{Allocator, AppId, AppShape, CoreId, Cores, HeldCore, HostShape, HostView, Move};
use alloc::vec::Vec;

/// Parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalRules {
    /// Between two plans, ns, above 0; 50 ms is Arachne's.
    pub period_ns: u64,
    /// What the estimate goes by.
    pub estimate: Estimate,
    /// By how much of a core an application must be overprovided before it loses one.
    pub hysteresis_cores: f64,
    /// How long a kthread may take to leave before it is moved away, ns.
    pub evict_ns: u64,
}

impl Default for IntervalRules {
    fn default() -> Self {
        Self {
            period_ns: 50_000_000,
            estimate: Estimate::default(),
            hysteresis_cores: 0.09,
            evict_ns: 100_000,
        }
    }
}

/// Re-plans every period. Cores do not come back in between, idle or not.
pub struct Interval {
    rules: IntervalRules,
    targets: Targets,
    estimators: Vec<Estimator>,
    /// What each application is thought to need.
    demand: Vec<usize>,
    last_look_ns: u64,
}

impl Interval {
    /// Every application that answers requests starts with one core.
    ///
    /// # Panics
    /// When the shape does not pass its check, or the period is 0.
    #[must_use]
    pub fn new(shape: &HostShape, rules: IntervalRules) -> Self {
        assert!(rules.period_ns > 0, "an allocator cannot plan all the time");
        let mut interval = Self {
            rules,
            targets: Targets::new(shape, rules.evict_ns),
            estimators: shape
                .apps
                .iter()
                .map(|app| Estimator::new(rules.estimate, rules.hysteresis_cores, app.most))
                .collect(),
            demand: alloc::vec![1; shape.apps.len()],
            last_look_ns: 0,
        };
        interval.plan(0);
        interval
    }

    fn next_plan_ns(&self) -> u64 {
        self.last_look_ns + self.rules.period_ns
    }

    fn forget(&mut self, app: AppId, most: usize) {
        let rules = self.rules;
        self.estimators[app.index()] = Estimator::new(rules.estimate, rules.hysteresis_cores, most);
        self.demand[app.index()] = 1;
    }

    fn plan(&mut self, now_ns: u64) {
        let demand = &self.demand;
        self.targets.split(now_ns, |app| demand[app.index()]);
    }
}

impl Allocator for Interval {
    const PARKS: bool = false;

    /// It starts with one core, or with those that it holds.
    fn admit(&mut self, now_ns: u64, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.targets.admit(app, shape, holding);
        self.forget(app, shape.most);
        self.demand[app.index()] = self.targets.cores.kept(app).max(1);
        self.plan(now_ns);
    }

    fn retire(&mut self, now_ns: u64, app: AppId) {
        self.targets.retire(app);
        self.forget(app, 0);
        self.plan(now_ns);
    }

    fn arrived(&mut self, _now_ns: u64, _app: AppId) {}

    fn released(&mut self, now_ns: u64, core: CoreId) {
        self.targets.released(now_ns, core);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let plan_ns = self.next_plan_ns();
        let evict_ns = self.targets.next_eviction_ns();
        Some(evict_ns.map_or(plan_ns, |evict_ns| evict_ns.min(plan_ns)))
    }

    fn look<V: HostView>(&mut self, now_ns: u64, view: &V) {
        self.targets.evict(now_ns);
        if now_ns < self.next_plan_ns() {
            return;
        }
        let period_ns = now_ns - self.last_look_ns;
        self.last_look_ns = now_ns;
        for (index, estimator) in self.estimators.iter_mut().enumerate() {
            let app = AppId(index as u16);
            let held = self.targets.cores.held(app);
            self.demand[index] = estimator.next(view.usage(app), period_ns, held);
        }
        self.plan(now_ns);
    }

    fn poll(&mut self) -> Option<Move> {
        self.targets.poll()
    }

    fn cores(&self) -> &Cores {
        &self.targets.cores
    }
}
