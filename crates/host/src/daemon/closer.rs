//! Closes what other processes made or filled, on threads of its own. The last descriptor of a socket that lingers (`SO_LINGER`) keeps whoever
//! closes it waiting for as long as its owner likes, and so does a connection in which such a descriptor still lies.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most threads. Each may be kept waiting by one descriptor.
const THREADS_MAX: usize = 16;
/// Time after which a thread without work ends.
const IDLE: Duration = Duration::from_secs(1);

/// The way to the threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Closer(Arc<ClosingThreads>);

#[derive(Debug, Default)]
struct ClosingThreads {
    queue: Mutex<ClosingQueue>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct ClosingQueue {
    waiting: VecDeque<OwnedFd>,
    threads: usize,
    idle: usize,
}

/// A descriptor that is closed elsewhere, never by the thread that drops it.
#[derive(Debug)]
pub(super) struct ForeignFd {
    /// Absent once it was handed over.
    fd: Option<OwnedFd>,
    closer: Closer,
}

impl Closer {
    /// A descriptor that these threads close.
    pub(super) fn keep(&self, fd: OwnedFd) -> ForeignFd {
        ForeignFd {
            fd: Some(fd),
            closer: self.clone(),
        }
    }

    fn close(&self, fd: OwnedFd) {
        let mut queue = self.0.locked();
        queue.waiting.push_back(fd);
        if queue.waiting.len() > queue.idle && queue.threads < THREADS_MAX {
            let threads = Arc::clone(&self.0);
            let started = thread::Builder::new()
                .name("hw-close".into())
                .spawn(move || threads.run());
            // Without another thread those that there are close it later.
            queue.threads += usize::from(started.is_ok());
        }
        drop(queue);
        self.0.filled.notify_one();
    }
}

impl ClosingThreads {
    fn locked(&self) -> MutexGuard<'_, ClosingQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what comes, until nothing comes for a while.
    fn run(&self) {
        let mut queue = self.locked();
        loop {
            if let Some(fd) = queue.waiting.pop_front() {
                drop(queue);
                drop(fd);
                queue = self.locked();
                continue;
            }
            queue.idle += 1;
            let waited = self.filled.wait_timeout(queue, IDLE);
            let (again, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = again;
            queue.idle -= 1;
            if timeout.timed_out() && queue.waiting.is_empty() {
                queue.threads -= 1;
                return;
            }
        }
    }
}

impl ForeignFd {
    /// The descriptor, once it is known that its close waits for nobody.
    pub(super) fn into_known(mut self) -> OwnedFd {
        self.fd.take().expect("it is handed over once")
    }
}

impl AsFd for ForeignFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is here until then").as_fd()
    }
}

impl Drop for ForeignFd {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            self.closer.close(fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{setsockopt, sockopt::Linger};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    /// A socket whose close waits for an hour, and its other end, which reads nothing.
    fn lingering(listener: &TcpListener) -> (OwnedFd, TcpStream) {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        while stream.write(&[0; 65536]).is_ok() {}
        let hour = libc::linger {
            l_onoff: 1,
            l_linger: 3600,
        };
        setsockopt(&stream, Linger, &hour).unwrap();
        // A socket that does not wait does not linger either.
        stream.set_nonblocking(false).unwrap();
        (stream.into(), other)
    }

    #[test]
    fn a_socket_that_lingers_keeps_neither_its_owner_nor_the_next_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let closer = Closer::default();
        let mut others = Vec::new();
        for _ in 0..THREADS_MAX - 1 {
            let (fd, other) = lingering(&listener);
            drop(closer.keep(fd));
            others.push(other);
        }
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(closer.keep(writer));
        // The pipe ends, so its writer was closed beside all that linger.
        let end = nix::unistd::read(&reader, &mut [0]).unwrap();
        assert_eq!(end, 0);
        assert!(closer.0.locked().threads >= THREADS_MAX);
        drop(others);
        let start = Instant::now();
        while closer.0.locked().threads > 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "threads stay");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
