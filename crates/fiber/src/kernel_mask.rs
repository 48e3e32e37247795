//! The calling thread's signal mask, as the kernel has it.
#![expect(unsafe_code, reason = "a system call")]

use std::ffi::c_int;

/// Bytes of the kernel's masks.
const KERNEL_BYTES: usize = size_of::<u64>();

/// The C library's signal for changes of credentials.
pub(crate) const SIGSETXID: c_int = 33;

/// The C library's own signals, 32 and 33, which a program does not block: for the cancellation of threads, and for changes of credentials.
pub(crate) const RESERVED: u64 = 1 << 31 | 1 << 32;

/// Makes `mask` the calling thread's, and returns its mask before.
pub(crate) fn replace(mask: u64) -> u64 {
    let mut before = 0;
    // SAFETY: two masks of the kernel's size.
    unsafe { change(libc::SIG_SETMASK, &raw const mask, &raw mut before) };
    before
}

/// The system call: not noted.
///
/// # Safety
/// As `pthread_sigmask`, with masks of the kernel's size.
pub(crate) unsafe fn change(how: c_int, mask: *const u64, before: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    let failed =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, mask, before, KERNEL_BYTES) };
    c_int::from(failed != 0)
}
