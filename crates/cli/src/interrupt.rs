//! Ctrl-C, and SIGTERM where a command heeds it: the first ends a command in order, so that it says what it has so far and leaves nothing behind.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a command that was interrupted: as a shell has it.
const INTERRUPTED: u8 = 130;
/// The same of one that was terminated.
const TERMINATED: u8 = 143;

/// Ctrl-C ended a command that had nothing to report yet.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: nothing is reported, since {0}")]
pub(crate) struct Interrupted(pub(crate) &'static str);

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    pressed: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for Ctrl-C; the second one ends the process at once.
    pub(crate) fn listen() -> Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&pressed))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)))
            .context("cannot listen for Ctrl-C")?;
        Ok(Self {
            pressed,
            terminated: Arc::default(),
        })
    }

    /// Listens for SIGTERM too, as for Ctrl-C.
    pub(crate) fn and_for_term(self) -> Result<Self> {
        flag::register_conditional_shutdown(SIGTERM, TERMINATED.into(), self.flag())
            .and_then(|_| flag::register(SIGTERM, Arc::clone(&self.terminated)))
            .and_then(|_| flag::register(SIGTERM, self.flag()))
            .context("cannot listen for SIGTERM")?;
        Ok(self)
    }

    pub(crate) fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Whether a run goes on that asks now and then.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.pressed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The flag that it raises.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.pressed)
    }

    /// The exit status of a command that was interrupted.
    pub(crate) fn status() -> ExitCode {
        ExitCode::from(INTERRUPTED)
    }

    /// The exit status of a command that one of its signals ended.
    pub(crate) fn status_by_signal(&self) -> ExitCode {
        if self.terminated.load(Ordering::Relaxed) {
            ExitCode::from(TERMINATED)
        } else {
            Self::status()
        }
    }
}
