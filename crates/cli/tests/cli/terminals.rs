//! Terminals to run the command on.

use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};

/// Both ends of a terminal of 80 columns: what a user sees, and what a program has. Reading the first fails once nobody has the second.
pub(super) fn terminal() -> (OwnedFd, OwnedFd) {
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: the first two point to integers of ours, the last to a size; the others may be null.
    let opened =
        unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null_mut(), null(), &size) };
    assert_eq!(opened, 0, "no terminal");
    // SAFETY: both were just opened, and nobody else has them.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}
