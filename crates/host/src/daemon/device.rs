//! The device of the daemon, as the registrar sees it.

use headway_xsk::DeviceWatch;
use std::sync::{Arc, OnceLock};

/// The interval between two looks at the device, ns.
const LOOK_NS: u64 = 500_000_000;

/// The device, and where the end of the data plane is told.
pub(super) struct DaemonDevice {
    /// The longest packet that it takes.
    pub(super) mtu: usize,
    watch: DeviceWatch,
    failure: Arc<OnceLock<String>>,
    due_ns: u64,
}

impl DaemonDevice {
    pub(super) fn new(mtu: usize, watch: DeviceWatch, failure: Arc<OnceLock<String>>) -> Self {
        Self {
            mtu,
            watch,
            failure,
            due_ns: 0,
        }
    }

    /// Looks whether the data plane still gets every frame, if a look is due.
    pub(super) fn look(&mut self, now_ns: u64) {
        if now_ns < self.due_ns || self.failure.get().is_some() {
            return;
        }
        self.due_ns = now_ns + LOOK_NS;
        if let Err(error) = self.watch.check() {
            let _ = self.failure.set(error.to_string());
        }
    }
}
