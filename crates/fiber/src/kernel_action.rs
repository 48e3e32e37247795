//! Handlers of signals, as the kernel has them: the C library's functions refuse its own signals, and do not tell where a handler returns to.
#![expect(unsafe_code, reason = "a system call")]

use std::ffi::c_int;
use std::ptr;

/// A handler's entry as the kernel keeps it: `struct sigaction` in its `signal.h`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct KernelAction {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

impl KernelAction {
    /// The signal's; none if there is no such signal.
    pub(crate) fn of(signal: c_int) -> Option<KernelAction> {
        let mut action = KernelAction::default();
        // SAFETY: only asks.
        let is_told = unsafe { change(signal, ptr::null(), &raw mut action) };
        is_told.then_some(action)
    }

    /// Whether it is a function, rather than a word for what the kernel does.
    pub(crate) fn is_function(&self) -> bool {
        self.handler > libc::SIG_IGN
    }

    /// Makes it the signal's.
    ///
    /// # Safety
    /// Its handler is a function that stays, of the type that the flags say, and returns to `restorer`.
    pub(crate) unsafe fn install(&self, signal: c_int) {
        // SAFETY: the caller's promise.
        unsafe { change(signal, self, ptr::null_mut()) };
    }
}

/// # Safety
/// As `sigaction`, with entries of the kernel's layout.
unsafe fn change(signal: c_int, new: *const KernelAction, before: *mut KernelAction) -> bool {
    // SAFETY: the caller's promise; a mask of the kernel's has eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            new,
            before,
            size_of::<u64>(),
        ) == 0
    }
}
