//! Ctrl-C: the first ends the demonstration in order, so that no temporary store stays behind.

use anyhow::{Context, Result, bail};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C; the second one ends the process at once.
    pub(crate) fn listen() -> Result<Self> {
        const INTERRUPTED: i32 = 130;
        let pressed = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&pressed))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)))
            .context("cannot listen for Ctrl-C")?;
        Ok(Self(pressed))
    }

    pub(crate) fn pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once it was pressed.
    pub(crate) fn check(&self) -> Result<()> {
        if self.pressed() {
            bail!("interrupted: nothing is reported, since not all policies had the same rounds");
        }
        Ok(())
    }
}
