//! TCP connections whose calls block the thread that makes them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time;
use smoltcp::wire::{IpAddress, IpEndpoint};

use crate::net_stack::{NetStack, StackCore, Transport};
use crate::threads::ThreadParking;

type SmoltcpTcp = tcp::Socket<'static>;

/// A connection. Dropping it closes it: written data still reaches the peer.
pub struct TcpStream<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    handle: SocketHandle,
    peer: SocketAddrV4,
    /// The port, if this connection alone uses it.
    own_port: Option<u16>,
}

impl<T: ThreadParking> TcpStream<T> {
    /// Connects within the timeout.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] when no socket listens there, [`io::ErrorKind::TimedOut`] when no answer arrives.
    pub fn connect(
        stack: &Arc<NetStack<T>>,
        to: SocketAddrV4,
        timeout: Duration,
    ) -> io::Result<Self> {
        let patience = time::Duration::from_micros(timeout.as_micros() as u64);
        let stream = stack.change(|core| {
            let port = core.take_port(Transport::Tcp, 0)?;
            let handle = core.add_tcp();
            core.sockets
                .get_mut::<SmoltcpTcp>(handle)
                .set_timeout(Some(patience));
            let begun = core.connect(handle, to, port);
            let stream = Self {
                stack: Arc::clone(stack),
                handle,
                peer: to,
                own_port: Some(port),
            };
            Ok::<_, io::Error>((stream, begun))
        });
        let (stream, begun) = stream?;
        begun.map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{to}: {error}"))
        })?;
        let begun = std::time::Instant::now();
        let state = stack.wait(|core, waker| {
            let socket = core.sockets.get_mut::<SmoltcpTcp>(stream.handle);
            match socket.state() {
                tcp::State::SynSent | tcp::State::SynReceived => {
                    socket.register_send_waker(waker);
                    None
                }
                state => Some(state),
            }
        });
        if state == tcp::State::Closed {
            let kind = if begun.elapsed() >= timeout {
                io::ErrorKind::TimedOut
            } else {
                io::ErrorKind::ConnectionRefused
            };
            return Err(kind.into());
        }
        stack.change(|core| {
            core.sockets
                .get_mut::<SmoltcpTcp>(stream.handle)
                .set_timeout(None);
        });
        Ok(stream)
    }

    /// The other side.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddrV4 {
        self.peer
    }

    /// Ends writing; `Shutdown::Read` has no effect.
    pub fn shutdown(&self, how: Shutdown) {
        if how != Shutdown::Read {
            self.stack
                .change(|core| core.sockets.get_mut::<SmoltcpTcp>(self.handle).close());
        }
    }

    /// Reads the available bytes, waiting for at least one; 0 after the peer's end.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionReset`] when the connection broke.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        self.stack.wait(|core, waker| {
            let socket = core.sockets.get_mut::<SmoltcpTcp>(self.handle);
            match socket.recv_slice(to) {
                Ok(0) => {
                    socket.register_recv_waker(waker);
                    None
                }
                Ok(bytes) => Some(Ok(bytes)),
                Err(tcp::RecvError::Finished) => Some(Ok(0)),
                Err(tcp::RecvError::InvalidState) => {
                    Some(Err(io::ErrorKind::ConnectionReset.into()))
                }
            }
        })
    }

    /// Writes as many bytes as fit the buffer, waiting for room for at least one.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] when the connection is closed or broke.
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        if from.is_empty() {
            return Ok(0);
        }
        self.stack.wait(|core, waker| {
            let socket = core.sockets.get_mut::<SmoltcpTcp>(self.handle);
            match socket.send_slice(from) {
                Ok(0) => {
                    socket.register_send_waker(waker);
                    None
                }
                Ok(bytes) => Some(Ok(bytes)),
                Err(tcp::SendError::InvalidState) => Some(Err(io::ErrorKind::BrokenPipe.into())),
            }
        })
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
        self.stack.change(|core| {
            core.orphan(self.handle);
            if let Some(port) = self.own_port {
                core.give_port(Transport::Tcp, port);
            }
        });
    }
}

impl<T: ThreadParking> fmt::Debug for TcpStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// A port at which connections are accepted.
pub struct TcpListener<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    port: u16,
    /// Sockets that listen, or have a connection that waits to be accepted.
    waiting: std::sync::Mutex<Vec<SocketHandle>>,
}

impl<T: ThreadParking> TcpListener<T> {
    /// Listens at a port; 0 lets the stack choose. Up to `backlog` connections, at least 1, wait to be accepted; further ones are refused.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when another socket of this application has the port.
    pub fn bind(stack: &Arc<NetStack<T>>, port: u16, backlog: usize) -> io::Result<Self> {
        let mut core = stack.locked();
        let port = core.take_port(Transport::Tcp, port)?;
        let waiting = (0..backlog.max(1)).map(|_| listen(&mut core, port));
        let waiting = std::sync::Mutex::new(waiting.collect());
        drop(core);
        Ok(Self {
            stack: Arc::clone(stack),
            port,
            waiting,
        })
    }

    /// The address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddrV4 {
        self.stack.locked().own(self.port)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// None today; the signature matches the standard library's.
    pub fn accept(&self) -> io::Result<TcpStream<T>> {
        let accepted = self.stack.wait(|core, waker| self.accepted(core, waker));
        Ok(TcpStream {
            stack: Arc::clone(&self.stack),
            handle: accepted.handle,
            peer: accepted.peer,
            own_port: None,
        })
    }

    /// Takes an established connection, and lets another socket listen in its place.
    fn accepted(&self, core: &mut StackCore, waker: &Waker) -> Option<AcceptedTcp> {
        let mut waiting = self
            .waiting
            .lock()
            .unwrap_or_else(|error| error.into_inner());
        for handle in waiting.iter_mut() {
            let socket = core.sockets.get_mut::<SmoltcpTcp>(*handle);
            match (socket.state(), socket.remote_endpoint()) {
                (tcp::State::Listen | tcp::State::SynReceived, _) => {
                    socket.register_recv_waker(waker);
                    socket.register_send_waker(waker);
                }
                (tcp::State::Established | tcp::State::CloseWait, Some(peer)) => {
                    let peer = socket_addr(peer);
                    let made = *handle;
                    *handle = listen(core, self.port);
                    return Some(AcceptedTcp { handle: made, peer });
                }
                // It broke before it was accepted.
                _ => {
                    core.orphan(*handle);
                    *handle = listen(core, self.port);
                    let socket = core.sockets.get_mut::<SmoltcpTcp>(*handle);
                    socket.register_recv_waker(waker);
                    socket.register_send_waker(waker);
                }
            }
        }
        None
    }
}

struct AcceptedTcp {
    handle: SocketHandle,
    peer: SocketAddrV4,
}

/// A socket that listens.
fn listen(core: &mut StackCore, port: u16) -> SocketHandle {
    let handle = core.add_tcp();
    let listening = core.sockets.get_mut::<SmoltcpTcp>(handle).listen(port);
    debug_assert!(listening.is_ok(), "a new socket, and a port that is not 0");
    handle
}

/// An endpoint as a standard library address; all addresses are IPv4.
pub(crate) fn socket_addr(endpoint: IpEndpoint) -> SocketAddrV4 {
    let IpAddress::Ipv4(ip) = endpoint.addr;
    SocketAddrV4::new(ip, endpoint.port)
}

impl<T: ThreadParking> Drop for TcpListener<T> {
    fn drop(&mut self) {
        let waiting = self
            .waiting
            .get_mut()
            .unwrap_or_else(|error| error.into_inner());
        let waiting = std::mem::take(waiting);
        self.stack.change(|core| {
            for handle in waiting {
                core.orphan(handle);
            }
            core.give_port(Transport::Tcp, self.port);
        });
    }
}

impl<T: ThreadParking> fmt::Debug for TcpListener<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
