//! Handlers of signals, and timers that send them.

use std::mem;
use std::ptr;

/// Has this function handle the signal, in the whole process.
pub(crate) fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: a handler of the type that the flags say.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(
            libc::sigaction(signal, &raw const action, ptr::null_mut()),
            0
        );
    }
}

/// Sends the thread that makes it a signal, until dropped.
pub(crate) struct SignalTimer(libc::timer_t);

impl SignalTimer {
    /// One that sends it again and again.
    pub(crate) fn of_this_thread(signal: libc::c_int, interval_ns: i64) -> Self {
        let timer = Self::unset(signal);
        timer.set(interval_ns, interval_ns);
        timer
    }

    /// One that sends nothing until it is [set](Self::once_in).
    pub(crate) fn unset(signal: libc::c_int) -> Self {
        // SAFETY: a timer of this thread, of which nothing is kept but its name.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = mem::zeroed();
            assert_eq!(
                libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer),
                0
            );
            Self(timer)
        }
    }

    /// Sends the signal once, after so long, ns above 0.
    pub(crate) fn once_in(&self, ns: i64) {
        self.set(ns, 0);
    }

    fn set(&self, first_ns: i64, interval_ns: i64) {
        let time = |ns| libc::timespec {
            tv_sec: 0,
            tv_nsec: ns,
        };
        let times = libc::itimerspec {
            it_interval: time(interval_ns),
            it_value: time(first_ns),
        };
        // SAFETY: made above; the times are read.
        let failed = unsafe { libc::timer_settime(self.0, 0, &raw const times, ptr::null_mut()) };
        assert_eq!(failed, 0);
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: made above.
        unsafe { libc::timer_delete(self.0) };
    }
}
