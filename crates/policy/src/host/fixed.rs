//! A static split: who serves the peak keeps the cores for it, busy or not (ZygOS, IX, Arrakis).

use super::targets::Targets;
use super::{Allocator, AppId, AppShape, CoreId, Cores, HeldCore, HostShape, HostView, Move};
use alloc::vec::Vec;

/// Parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaticRules {
    /// How long a kthread may take to leave before it is moved away, ns: cores change hands when applications come and go.
    pub evict_ns: u64,
}

impl Default for StaticRules {
    fn default() -> Self {
        Self { evict_ns: 100_000 }
    }
}

/// Every application has its guaranteed cores for ever, and batch applications what is left.
pub struct Static {
    targets: Targets,
    guaranteed: Vec<usize>,
}

impl Static {
    /// The cores are dealt out at once, and anew whenever an application comes or goes.
    ///
    /// # Panics
    /// When the shape does not pass its check.
    #[must_use]
    pub fn new(shape: &HostShape, rules: StaticRules) -> Self {
        let mut split = Self {
            targets: Targets::new(shape, rules.evict_ns),
            guaranteed: shape.apps.iter().map(|app| app.guaranteed).collect(),
        };
        split.deal(0);
        split
    }

    fn deal(&mut self, now_ns: u64) {
        let guaranteed = &self.guaranteed;
        self.targets.split(now_ns, |app| guaranteed[app.index()]);
    }
}

impl Allocator for Static {
    const PARKS: bool = false;

    fn admit(&mut self, now_ns: u64, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.targets.admit(app, shape, holding);
        self.guaranteed[app.index()] = shape.guaranteed;
        self.deal(now_ns);
    }

    fn retire(&mut self, now_ns: u64, app: AppId) {
        self.targets.retire(app);
        self.guaranteed[app.index()] = 0;
        self.deal(now_ns);
    }

    fn arrived(&mut self, _now_ns: u64, _app: AppId) {}

    fn released(&mut self, now_ns: u64, core: CoreId) {
        self.targets.released(now_ns, core);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.targets.next_eviction_ns()
    }

    fn look<V: HostView>(&mut self, now_ns: u64, _view: &V) {
        self.targets.evict(now_ns);
    }

    fn poll(&mut self) -> Option<Move> {
        self.targets.poll()
    }

    fn cores(&self) -> &Cores {
        &self.targets.cores
    }
}
