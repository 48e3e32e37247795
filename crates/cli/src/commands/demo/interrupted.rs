//! A demonstration that was interrupted before its first round was complete reports nothing.

use crate::interrupt::Interrupt;
use anyhow::{Result, bail};

/// An error once the user pressed Ctrl-C.
pub(super) fn not_interrupted(interrupt: &Interrupt) -> Result<()> {
    if interrupt.pressed() {
        bail!("interrupted: nothing is reported, since no round of all policies was complete");
    }
    Ok(())
}
