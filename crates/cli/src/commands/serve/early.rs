//! Signals before the server heeds them: what the start has made so far, such as a store in a temporary folder, is removed.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first signal that came during the start.
#[derive(Clone, Debug)]
pub(crate) struct EarlySignals(Arc<AtomicUsize>);

impl EarlySignals {
    /// Listens if there will be something to remove. Otherwise signals end the process by themselves, and none is seen.
    pub(super) fn listen(makes_something: bool) -> Result<Self> {
        let seen = Arc::new(AtomicUsize::new(0));
        for signal in [SIGTERM, SIGINT].into_iter().filter(|_| makes_something) {
            signal_hook::flag::register_usize(signal, Arc::clone(&seen), signal as usize)
                .context("cannot watch for signals")?;
        }
        Ok(Self(seen))
    }

    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Once everything is removed: ends the process as the signal does that came, if one did.
    pub(super) fn end_process(&self) {
        if self.came() {
            // The call ends the process; where it fails, the start's error does.
            let _ = emulate_default_handler(self.0.load(Ordering::Relaxed) as i32);
        }
    }
}
