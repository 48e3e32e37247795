//! A demonstration that was interrupted reports nothing.

use crate::interrupt::Interrupt;
use anyhow::{Result, bail};

/// An error once the user pressed Ctrl-C.
pub(super) fn not_interrupted(interrupt: &Interrupt) -> Result<()> {
    if interrupt.pressed() {
        bail!("interrupted: nothing is reported, since not all policies had the same rounds");
    }
    Ok(())
}
