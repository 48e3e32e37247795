//! The cores of a run: as many as there are workers, for every system the same.

use headway_machine::Topology;
use headway_machine::thread::pin_current;

/// A core for each worker.
#[derive(Clone)]
pub(crate) struct Cores {
    workers: usize,
    /// Empty where there are fewer cores than workers: then nobody is pinned, as in `headway bench`.
    order: Vec<usize>,
}

impl Cores {
    pub(crate) fn of(workers: usize) -> Self {
        let order = Topology::read("/sys").map_or_else(|_| Vec::new(), |all| all.pinning_order());
        let enough = order.len() >= workers;
        Self {
            workers,
            order: if enough { order } else { Vec::new() },
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Pins the calling thread, a worker, to its core; where the system refuses, the worker runs unpinned.
    pub(crate) fn pin(&self, worker: usize) {
        if let Some(&core) = self.order.get(worker % self.workers) {
            let _ = pin_current(core);
        }
    }
}
