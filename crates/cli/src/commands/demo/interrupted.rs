//! A demonstration that was interrupted before its first round was complete reports nothing.

use crate::interrupt::{Interrupt, Interrupted};
use anyhow::{Result, bail};

/// [`Interrupted`] once the user pressed Ctrl-C.
pub(super) fn not_interrupted(interrupt: &Interrupt) -> Result<()> {
    if interrupt.pressed() {
        bail!(Interrupted("no round of all policies was complete"));
    }
    Ok(())
}
