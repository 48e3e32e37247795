//! A static split: who serves the peak keeps the cores for it, busy or not (ZygOS, IX, Arrakis).

use super::targets::Targets;
use super::{Allocator, AppId, CoreId, Cores, HostShape, HostView, Move};

/// Every application has its guaranteed cores for ever, and batch applications what is left.
pub struct Static {
    targets: Targets,
}

impl Static {
    /// The cores are dealt out at once.
    ///
    /// # Panics
    /// When the shape does not pass its check.
    #[must_use]
    pub fn new(shape: &HostShape) -> Self {
        let mut targets = Targets::new(shape);
        targets.split(|app| shape.apps[app.index()].guaranteed);
        Self { targets }
    }
}

impl Allocator for Static {
    const PARKS: bool = false;

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
