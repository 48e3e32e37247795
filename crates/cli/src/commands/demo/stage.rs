//! The service, the machine, and what requests cost on it.

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
/// How long the machine is watched at a time.
const WATCH: Duration = Duration::from_millis(100);

/// All that the live rounds run on.
pub(crate) struct Stage {
    pub(crate) machine: MachineDescription,
    pub(crate) kv: Kv,
    /// Entries that a SCAN reads.
    pub(crate) scan_entries: u32,
    pub(crate) workers: usize,
    /// GET and SCAN with the mean times that the server measured.
    pub(crate) workload: Workload,
    /// How noisy the machine was whenever nothing of ours ran.
    pub(crate) noise: noise::NoiseSummary,
    pub(crate) bodies: KvWorkload,
}

impl Stage {
    /// Watches the machine for a moment. Nothing else of ours must run.
    pub(crate) fn watch_noise(&mut self) -> Result<()> {
        self.noise = self.noise.merge(&noise::measure(WATCH, None)?);
        Ok(())
    }

    /// What fills the requests.
    pub(crate) fn body(&self) -> Body {
        let bodies = self.bodies.clone();
        Arc::new(move |class, index, room| bodies.body(class, index, room))
    }

    /// The classes as the server's settings name them.
    pub(crate) fn server_classes(&self) -> Vec<DeclaredClass> {
        headway::config::classes(&self.workload)
    }
}

/// Workers that leave the client room where there are cores for it.
pub(crate) fn default_workers() -> usize {
    const MOST: usize = 4;
    headway_sim::available_threads()
        .saturating_sub(2)
        .clamp(2, MOST)
}
