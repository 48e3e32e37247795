//! Wakes a thread that waits for a queue, without a system call when it does not wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

/// A waker: any thread can end one thread's wait.
///
/// `wake` stores `pending`, then loads `sleeping`; `wait` stores `sleeping`, then loads `pending`. All four are
/// sequentially consistent, so at least one side sees the other's store (Dekker): either the waker writes the
/// event, or the waiter does not block. A late event only causes an early return.
#[derive(Debug)]
pub struct Waker {
    event: EventFd,
    pending: AtomicBool,
    sleeping: AtomicBool,
}

impl Waker {
    /// Creates a waker whose thread does not wait yet.
    ///
    /// # Errors
    /// When the process may not open an event descriptor.
    pub fn new() -> io::Result<Waker> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_flags(flags).map_err(refused)?;
        Ok(Waker {
            event,
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
        })
    }

    /// Ends the current wait, or the next.
    pub fn wake(&self) {
        let already_pending = self.pending.swap(true, Ordering::SeqCst);
        if !already_pending && self.sleeping.load(Ordering::SeqCst) {
            // The write fails only when the counter is full, and then the event is readable anyway.
            let _ = self.event.write(1);
        }
    }

    /// Blocks until a wake, until `readable` is readable, or until the time is over.
    pub fn wait(&self, readable: Option<BorrowedFd<'_>>, timeout_ns: u64) {
        self.sleeping.store(true, Ordering::SeqCst);
        if !self.pending.load(Ordering::SeqCst) {
            self.block(readable, timeout_ns);
        }
        self.sleeping.store(false, Ordering::SeqCst);
        // From here on, a wake is for the next wait. Everything stored before an earlier wake is visible.
        self.pending.swap(false, Ordering::SeqCst);
    }

    /// Takes a wake since the last wait, for a thread that spins instead of blocking.
    pub fn take_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::SeqCst)
    }

    fn block(&self, readable: Option<BorrowedFd<'_>>, timeout_ns: u64) {
        let event = PollFd::new(self.event.as_fd(), PollFlags::POLLIN);
        let mut fds = [
            event,
            PollFd::new(readable.unwrap_or(self.event.as_fd()), PollFlags::POLLIN),
        ];
        let watched = if readable.is_some() { 2 } else { 1 };
        let timeout = TimeSpec::from(std::time::Duration::from_nanos(timeout_ns));
        // An interrupted call is an early return, which `wait` may make.
        let _ = ppoll(&mut fds[..watched], Some(timeout), None);
        if fds[0].any().unwrap_or(true) {
            let _ = self.event.read();
        }
    }
}

/// A filter of system calls looks like a lack of rights: the call is named. The limit of open files stays what it is.
fn refused(errno: Errno) -> io::Error {
    match errno {
        Errno::EPERM | Errno::EACCES | Errno::ENOSYS => io::Error::new(
            io::Error::from(errno).kind(),
            format!(
                "eventfd2: {errno}: a filter of system calls (seccomp) refuses what threads are woken by; allow eventfd2 there"
            ),
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// So long that a lost wake would hang the test instead of passing late.
    const FOREVER_NS: u64 = 3_600_000_000_000;

    #[test]
    fn a_refused_event_names_the_call() {
        let told = refused(Errno::EPERM).to_string();
        assert!(
            told.contains("eventfd2") && told.contains("seccomp"),
            "{told}"
        );
        assert_eq!(refused(Errno::EMFILE).raw_os_error(), Some(libc::EMFILE));
    }

    #[test]
    fn a_wake_before_the_wait_ends_it() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.wake();
        waker.wait(None, FOREVER_NS);
        waker.wait(None, 1);
    }

    #[test]
    fn a_pending_wake_is_taken_once() {
        let waker = Waker::new().unwrap();
        assert!(!waker.take_pending());
        waker.wake();
        assert!(waker.take_pending());
        assert!(!waker.take_pending());
    }

    #[test]
    fn no_wake_is_lost_however_the_threads_meet() {
        const ROUNDS: u64 = 20_000;
        let (ping, pong) = (Waker::new().unwrap(), Waker::new().unwrap());
        let (sent, answered) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    while sent.load(Ordering::Relaxed) < round {
                        ping.wait(None, FOREVER_NS);
                    }
                    answered.store(round, Ordering::Relaxed);
                    pong.wake();
                }
            });
            for round in 1..=ROUNDS {
                sent.store(round, Ordering::Relaxed);
                ping.wake();
                while answered.load(Ordering::Relaxed) < round {
                    pong.wait(None, FOREVER_NS);
                }
            }
        });
        assert_eq!(answered.into_inner(), ROUNDS);
    }
}
