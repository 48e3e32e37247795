//! Calls of a kthread that must be safe in a signal handler.
#![expect(unsafe_code, reason = "system calls without locks around them")]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// The kernel's number of the calling thread.
pub(super) fn own_tid() -> u32 {
    // SAFETY: it takes nothing.
    let tid = unsafe { libc::gettid() };
    tid as u32
}

/// The user as whom this process acts.
pub(super) fn own_uid() -> u32 {
    // SAFETY: it takes and changes nothing.
    unsafe { libc::geteuid() }
}

/// Rings a doorbell. A full counter means that it has rung already.
pub(super) fn ring(doorbell: BorrowedFd<'_>) {
    let one = 1_u64;
    // SAFETY: the kernel reads the eight bytes of `one`.
    unsafe {
        libc::write(doorbell.as_raw_fd(), (&raw const one).cast(), 8);
    }
}

/// Puts the new doorbell under the old one's number, so that a concurrent ring reaches one of them.
pub(super) fn replace(old: &OwnedFd, new: &OwnedFd) {
    // SAFETY: both are open and owned, and stay so.
    unsafe {
        libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC);
    }
}
