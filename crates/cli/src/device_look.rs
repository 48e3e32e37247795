//! The look at the device of `xdp://`: when it brings no more packets, the server ends with the reason.

use anyhow::{Context, Result};
use headway_runtime::{Server, Stopper};
use headway_xsk::{DeviceWatch, XskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The thread that looks, while the server runs.
pub(super) struct DeviceLook {
    thread: JoinHandle<Result<(), XskError>>,
    ending: Arc<AtomicBool>,
}

impl DeviceLook {
    /// Starts the thread, if the server has a device.
    pub(super) fn begin(server: &Server, watch: Option<DeviceWatch>) -> Result<Option<Self>> {
        let Some(watch) = watch else { return Ok(None) };
        let ending = Arc::new(AtomicBool::new(false));
        let (ends, stopper) = (Arc::clone(&ending), server.stopper());
        let thread = std::thread::Builder::new()
            .name("hw-device".into())
            .spawn(move || look(&watch, &stopper, &ends))
            .context("cannot start the thread that looks at the device")?;
        Ok(Some(Self { thread, ending }))
    }

    /// Once the server has stopped: why the device ended it, if it did.
    pub(super) fn end(self) -> Result<()> {
        self.ending.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().map_or(Ok(()), |looked| Ok(looked?))
    }
}

fn look(watch: &DeviceWatch, stopper: &Stopper, ending: &AtomicBool) -> Result<(), XskError> {
    while !ending.load(Ordering::Acquire) {
        watch.check().inspect_err(|_| stopper.request_stop())?;
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(())
}
