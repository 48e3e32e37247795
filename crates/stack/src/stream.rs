//! TCP connections and listeners whose calls block the thread that makes them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::net_stack::{ConnectionPlace, NetStack, as_ns};
use crate::tcp::connection::TcpFailure;
use crate::tcp::flow::FlowKey;
use crate::tcp::listening::AcceptQueue;
use crate::threads::ThreadParking;

fn reading_error(failure: TcpFailure) -> io::Error {
    match failure {
        TcpFailure::TimedOut => io::ErrorKind::TimedOut.into(),
        TcpFailure::Refused => io::ErrorKind::ConnectionRefused.into(),
        TcpFailure::Reset => io::ErrorKind::ConnectionReset.into(),
    }
}

fn writing_error(failure: TcpFailure) -> io::Error {
    match failure {
        TcpFailure::TimedOut => io::ErrorKind::TimedOut.into(),
        _ => io::ErrorKind::BrokenPipe.into(),
    }
}

/// A connection. Dropping it closes it: written data still reaches the peer. Any number of threads may read and write.
pub struct TcpStream<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    place: ConnectionPlace,
    key: FlowKey,
}

impl<T: ThreadParking> TcpStream<T> {
    /// Connects within the timeout.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] when no socket listens there, [`io::ErrorKind::TimedOut`] when no answer arrives,
    /// [`io::ErrorKind::InvalidInput`] for an address or a port that is nobody's and for the stack's own address, [`io::ErrorKind::AddrNotAvailable`] for IPv6 where the stack has no address
    /// of it, [`io::ErrorKind::AddrInUse`] when no port is free.
    pub fn connect(
        stack: &Arc<NetStack<T>>,
        to: impl Into<SocketAddr>,
        timeout: Duration,
    ) -> io::Result<Self> {
        let to = to.into();
        let local_ip = stack.own_for(to)?;
        let begin = |local_port| {
            let key = FlowKey {
                local_ip,
                remote_ip: to.ip(),
                local_port,
                remote_port: to.port(),
            };
            let shard = stack.shard_of(&key);
            let id = stack.change(shard, |table, now_ns, egress| {
                table.connect(key, as_ns(timeout), now_ns, egress)
            });
            id.map(|id| Self {
                stack: Arc::clone(stack),
                place: ConnectionPlace { shard, id },
                key,
            })
        };
        let section = stack.threads.enter_section();
        let stream = stack.tcp_ports.connect(begin)?;
        drop(section);
        let ConnectionPlace { shard, id } = stream.place;
        let opened = stack.wait(|waker| stack.change(shard, |table, _, _| table.opened(id, waker)));
        opened.map(|()| stream).map_err(reading_error)
    }

    /// The other side.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.key.remote()
    }

    /// This side.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.key.local()
    }

    /// Ends writing; `Shutdown::Read` has no effect.
    pub fn shutdown(&self, how: Shutdown) {
        let ConnectionPlace { shard, id } = self.place;
        if how != Shutdown::Read {
            self.stack.change(shard, |table, now_ns, egress| {
                table.close(id, now_ns, egress);
            });
        }
    }

    /// Reads the available bytes, waiting for at least one; 0 after the peer's end.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionReset`] when the connection broke, [`io::ErrorKind::TimedOut`] when the peer was silent for too long.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<usize> {
        self.stack.wait(|waker| self.receive_or_wait(to, waker))
    }

    /// As [`receive`](Self::receive), without waiting: `None` if nothing has come, and `waker` is called when something has.
    ///
    /// # Errors
    /// As of [`receive`](Self::receive).
    pub fn receive_or_wait(&self, to: &mut [u8], waker: &Waker) -> Option<io::Result<usize>> {
        if to.is_empty() {
            return Some(Ok(0));
        }
        let ConnectionPlace { shard, id } = self.place;
        let result = self.stack.change(shard, |table, now_ns, egress| {
            table.read(id, to, waker, now_ns, egress)
        });
        result.map(|result| result.map_err(reading_error))
    }

    /// Writes as many bytes as fit the buffer, waiting for room for at least one.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] when the connection is closed or broke, [`io::ErrorKind::TimedOut`] when the peer was silent for too long.
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        self.stack.wait(|waker| self.send_or_wait(from, waker))
    }

    /// As [`send`](Self::send), without waiting: `None` if there is no room, and `waker` is called when there is.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    pub fn send_or_wait(&self, from: &[u8], waker: &Waker) -> Option<io::Result<usize>> {
        if from.is_empty() {
            return Some(Ok(0));
        }
        let ConnectionPlace { shard, id } = self.place;
        let result = self.stack.change(shard, |table, now_ns, egress| {
            table.write(id, from, waker, now_ns, egress)
        });
        result.map(|result| result.map_err(writing_error))
    }

    /// Whether a call of [`receive`](Self::receive), and one of [`send`](Self::send), would not wait. `waker` is called when what would wait no longer does.
    pub fn readiness(&self, waker: &Waker) -> (bool, bool) {
        let ConnectionPlace { shard, id } = self.place;
        let readiness = self
            .stack
            .change(shard, |table, _, _| table.readiness(id, waker));
        (readiness.is_readable, readiness.is_writable)
    }
}

impl<T: ThreadParking> Read for &TcpStream<T> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.receive(to)
    }
}

impl<T: ThreadParking> Write for &TcpStream<T> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.send(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: ThreadParking> Drop for TcpStream<T> {
    fn drop(&mut self) {
        let ConnectionPlace { shard, id } = self.place;
        self.stack.change(shard, |table, now_ns, egress| {
            table.abandon(id, now_ns, egress);
        });
    }
}

impl<T: ThreadParking> fmt::Debug for TcpStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("peer", &self.peer_addr())
            .finish_non_exhaustive()
    }
}

/// A port at which connections are accepted, of IPv4 and IPv6.
pub struct TcpListener<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    port: u16,
    queue: Arc<AcceptQueue>,
}

impl<T: ThreadParking> TcpListener<T> {
    /// Listens at a port; 0 lets the stack choose. Up to `backlog` connections, at least 1, wait to be accepted; the handshakes of further ones end when there
    /// is a place.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when another socket of this application has the port.
    pub fn bind(stack: &Arc<NetStack<T>>, port: u16, backlog: usize) -> io::Result<Self> {
        let _section = stack.threads.enter_section();
        let port = stack.tcp_ports.listen(port)?;
        let queue = Arc::new(AcceptQueue::new(backlog));
        for shard in 0..stack.shards() {
            stack.change(shard, |table, _, _| table.listen(port, Arc::clone(&queue)));
        }
        Ok(Self {
            stack: Arc::clone(stack),
            port,
            queue,
        })
    }

    /// The IPv4 address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.stack.own(self.port)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// None today; the signature matches the standard library's.
    pub fn accept(&self) -> io::Result<TcpStream<T>> {
        Ok(self.stack.wait(|waker| self.accept_or_wait(waker)))
    }

    /// As [`accept`](Self::accept), until a moment; then `None`.
    pub fn accept_until(&self, until: Instant) -> Option<TcpStream<T>> {
        let attempt = |waker: &Waker| self.accept_or_wait(waker);
        self.stack.wait_until(Some(until), attempt)
    }

    /// The next connection, without waiting; without one, `waker` is called when there is.
    pub fn accept_or_wait(&self, waker: &Waker) -> Option<TcpStream<T>> {
        let _section = self.stack.threads.enter_section();
        let waiting = self.queue.pop(waker)?;
        let shard = self.stack.shard_of(&waiting.key);
        Some(TcpStream {
            stack: Arc::clone(&self.stack),
            place: ConnectionPlace {
                shard,
                id: waiting.id,
            },
            key: waiting.key,
        })
    }

    /// Whether a call of [`accept`](Self::accept) would not wait; otherwise `waker` is called when it would not.
    pub fn is_ready(&self, waker: &Waker) -> bool {
        let _section = self.stack.threads.enter_section();
        self.queue.is_ready(waker)
    }
}

impl<T: ThreadParking> Drop for TcpListener<T> {
    fn drop(&mut self) {
        let _section = self.stack.threads.enter_section();
        for shard in 0..self.stack.shards() {
            self.stack
                .change(shard, |table, _, _| table.unlisten(self.port));
        }
        for waiting in self.queue.close() {
            let shard = self.stack.shard_of(&waiting.key);
            self.stack.change(shard, |table, now_ns, egress| {
                table.abandon(waiting.id, now_ns, egress);
            });
        }
        self.stack.tcp_ports.unlisten(self.port);
    }
}

impl<T: ThreadParking> fmt::Debug for TcpListener<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
