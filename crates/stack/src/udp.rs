//! UDP sockets whose calls block the thread that makes them.

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::IpEndpoint;

use crate::net_stack::{NetStack, Transport};
use crate::tcp::socket_addr;
use crate::threads::ThreadParking;

type SmoltcpUdp = udp::Socket<'static>;

/// The most datagrams that wait in each direction.
const DATAGRAMS: usize = 256;

/// A UDP port of the application.
pub struct UdpSocket<T: ThreadParking> {
    stack: Arc<NetStack<T>>,
    handle: SocketHandle,
    port: u16,
}

impl<T: ThreadParking> UdpSocket<T> {
    /// Takes a port; 0 lets the stack choose.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when another socket of this application has it.
    pub fn bind(stack: &Arc<NetStack<T>>, port: u16) -> io::Result<Self> {
        let mut core = stack.locked();
        let port = core.take_port(Transport::Udp, port)?;
        let bytes = core.buffer_bytes;
        let buffer = || {
            let metadata = vec![udp::PacketMetadata::EMPTY; DATAGRAMS];
            udp::PacketBuffer::new(metadata, vec![0; bytes])
        };
        let mut socket = udp::Socket::new(buffer(), buffer());
        let bound = socket.bind(port);
        debug_assert!(bound.is_ok(), "a new socket, and a port that is not 0");
        let handle = core.sockets.add(socket);
        drop(core);
        Ok(Self {
            stack: Arc::clone(stack),
            handle,
            port,
        })
    }

    /// The address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddrV4 {
        self.stack.locked().own(self.port)
    }

    /// Waits for a datagram; returns its length and its sender. Bytes that do not fit `to` are lost.
    ///
    /// # Errors
    /// None today; the signature matches the standard library's.
    pub fn recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
        self.stack.wait(|core, waker| {
            let socket = core.sockets.get_mut::<SmoltcpUdp>(self.handle);
            match socket.recv() {
                Ok((datagram, metadata)) => {
                    let bytes = datagram.len().min(to.len());
                    to[..bytes].copy_from_slice(&datagram[..bytes]);
                    Some(Ok((bytes, socket_addr(metadata.endpoint))))
                }
                Err(_) => {
                    socket.register_recv_waker(waker);
                    None
                }
            }
        })
    }

    /// Sends a datagram; waits for room.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a datagram that never fits the buffer, or for address 0 or port 0.
    pub fn send_to(&self, from: &[u8], to: SocketAddrV4) -> io::Result<()> {
        let endpoint = IpEndpoint::from((*to.ip(), to.port()));
        self.stack.wait(|core, waker| {
            let socket = core.sockets.get_mut::<SmoltcpUdp>(self.handle);
            if from.len() > socket.payload_send_capacity() {
                return Some(Err(io::ErrorKind::InvalidInput.into()));
            }
            match socket.send_slice(from, endpoint) {
                Ok(()) => Some(Ok(())),
                Err(udp::SendError::Unaddressable) => Some(Err(io::ErrorKind::InvalidInput.into())),
                Err(udp::SendError::BufferFull) => {
                    socket.register_send_waker(waker);
                    None
                }
            }
        })
    }
}

impl<T: ThreadParking> Drop for UdpSocket<T> {
    fn drop(&mut self) {
        self.stack.change(|core| {
            core.sockets.remove(self.handle);
            core.give_port(Transport::Udp, self.port);
        });
    }
}

impl<T: ThreadParking> fmt::Debug for UdpSocket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
