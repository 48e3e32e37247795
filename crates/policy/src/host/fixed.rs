//! A static split: who serves the peak keeps the cores for it, busy or not (ZygOS, IX, Arrakis).

use super::targets::Targets;
use super::{Allocator, AppId, AppShape, CoreId, Cores, HeldCore, HostShape, HostView, Move};
use alloc::vec::Vec;

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
    pub fn new(shape: &HostShape) -> Self {
        let mut split = Self {
            targets: Targets::new(shape),
            guaranteed: shape.apps.iter().map(|app| app.guaranteed).collect(),
        };
        split.deal();
        split
    }

    fn deal(&mut self) {
        let guaranteed = &self.guaranteed;
        self.targets.split(|app| guaranteed[app.index()]);
    }
}

impl Allocator for Static {
    const PARKS: bool = false;

    fn admit(&mut self, _now_ns: u64, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.targets.admit(app, shape, holding);
        self.guaranteed[app.index()] = shape.guaranteed;
        self.deal();
    }

    fn retire(&mut self, _now_ns: u64, app: AppId) {
        self.targets.retire(app);
        self.guaranteed[app.index()] = 0;
        self.deal();
    }

    fn arrived(&mut self, _now_ns: u64, _app: AppId) {}

    fn released(&mut self, _now_ns: u64, core: CoreId) {
        self.targets.released(core);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    fn look<V: HostView>(&mut self, _now_ns: u64, _view: &V) {}

    fn poll(&mut self) -> Option<Move> {
        self.targets.poll()
    }

    fn cores(&self) -> &Cores {
        &self.targets.cores
    }
}
