//! Sleeping on a word that two processes share.
#![expect(unsafe_code, reason = "futex has no wrapper")]

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps while the word has this value, at most for the timeout. Returns early on a signal.
pub(crate) fn wait(word: &AtomicU32, value: u32, most: Duration) {
    let timeout = libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: word and timeout outlive the call, and the kernel only reads them.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            ptr::from_ref(word),
            libc::FUTEX_WAIT,
            value,
            &raw const timeout,
        );
    }
}

/// Changes the word and wakes its sleepers. It never blocks: a futex has no buffer that the other process could fill.
pub(crate) fn wake(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    // SAFETY: the kernel uses the address as a name only.
    unsafe {
        libc::syscall(libc::SYS_futex, ptr::from_ref(word), libc::FUTEX_WAKE, 1);
    }
}
