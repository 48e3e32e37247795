//! The service, the machine, and the service times of requests on it.

use anyhow::Result;
use headway_kv::{Kv, KvWorkload};
use headway_load::Body;
use headway_machine::{MachineDescription, noise};
use headway_runtime::DeclaredClass;
use headway_workload::Workload;
use std::sync::Arc;
use std::time::Duration;

/// Keys of the store.
pub(crate) const KEYS: u64 = 100_000;
/// Bytes of each value.
pub(crate) const VALUE_BYTES: usize = 100;
/// The length of one observation of the machine.
const WATCH: Duration = Duration::from_millis(100);

/// The resources of the live rounds.
pub(crate) struct Stage {
    pub(crate) machine: MachineDescription,
    pub(crate) kv: Kv,
    /// Entries that a SCAN reads.
    pub(crate) scan_entries: u32,
    pub(crate) workers: usize,
    /// GET and SCAN with the mean times that the server measured.
    pub(crate) workload: Workload,
    /// The noise of the machine while the demo itself was idle.
    pub(crate) noise: noise::NoiseSummary,
    pub(crate) bodies: KvWorkload,
}

impl Stage {
    /// Observes the machine for a moment, while the demo itself is idle.
    pub(crate) fn watch_noise(&mut self) -> Result<()> {
        self.noise = self.noise.merge(&noise::measure(WATCH, None)?);
        Ok(())
    }

    /// The generator of the requests' bodies.
    pub(crate) fn body(&self) -> Body {
        let bodies = self.bodies.clone();
        Arc::new(move |class, index, room| bodies.body(class, index, room))
    }

    /// The classes, as declared in the server's settings.
    pub(crate) fn server_classes(&self) -> Vec<DeclaredClass> {
        headway::config::classes(&self.workload)
    }
}

/// The number of workers that leaves a core to the client where there are enough.
pub(crate) fn default_workers() -> usize {
    const MOST: usize = 4;
    headway_sim::available_threads()
        .saturating_sub(2)
        .clamp(2, MOST)
}
