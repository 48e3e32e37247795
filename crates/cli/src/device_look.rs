//! The look at the device of `xdp://`: when it brings no more packets, the server or switch on it ends with the reason.

use anyhow::{Context, Result};
use headway_xsk::{DeviceWatch, XskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The thread that looks, while the server or switch runs.
pub(crate) struct DeviceLook {
    thread: JoinHandle<Result<(), XskError>>,
    ending: Arc<AtomicBool>,
}

impl DeviceLook {
    /// Starts the thread, if there is a device. It calls `stop` once, when the device brings no more packets.
    pub(crate) fn begin(
        watch: Option<DeviceWatch>,
        stop: impl FnOnce() + Send + 'static,
    ) -> Result<Option<Self>> {
        let Some(watch) = watch else { return Ok(None) };
        let ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ending);
        let thread = std::thread::Builder::new()
            .name("hw-device".into())
            .spawn(move || look(&watch, stop, &ends))
            .context("cannot start the thread that looks at the device")?;
        Ok(Some(Self { thread, ending }))
    }

    /// Once the server or switch has stopped: why the device ended it, if it did.
    pub(crate) fn end(self) -> Result<()> {
        self.ending.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().map_or(Ok(()), |looked| Ok(looked?))
    }
}

fn look(watch: &DeviceWatch, stop: impl FnOnce(), ending: &AtomicBool) -> Result<(), XskError> {
    while !ending.load(Ordering::Acquire) {
        if let Err(why) = watch.check() {
            stop();
            return Err(why);
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(())
}
