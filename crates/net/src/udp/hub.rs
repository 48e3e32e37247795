//! One socket for many peers: the port of a switch.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use super::batch::{NamedInbox, NamedOutbox};
use super::bind::{self, BindError};
use crate::waker::Waker;

/// A bound UDP port through which all of a switch's packets come and go.
#[derive(Debug)]
pub struct UdpHub {
    socket: UdpSocket,
    addr: SocketAddr,
    waker: Waker,
}

impl UdpHub {
    /// Binds `addr`, exclusively; port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// [`BindError`], which names the remedy.
    pub fn bind(addr: SocketAddr) -> Result<Self, BindError> {
        let socket = bind::exclusive(addr)?;
        bind::tell_arrivals(&socket, addr)?;
        let bound = bind::local_addr(&socket, addr)?;
        let waker = Waker::new().map_err(|source| BindError::Other {
            addr,
            operation: "eventfd",
            source,
        })?;
        Ok(Self {
            socket,
            addr: bound,
            waker,
        })
    }

    /// The address bound, with the port the system chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// An empty batch to send from this port.
    #[must_use]
    pub fn outbox(&self) -> NamedOutbox {
        NamedOutbox::new(self.addr.is_ipv4())
    }

    /// Receives the waiting datagrams, up to a batch, without blocking; returns their number.
    #[inline]
    pub fn receive(&self, inbox: &mut NamedInbox) -> usize {
        // An empty queue is an error too (EAGAIN), and no other error concerns a later datagram.
        inbox.receive(&self.socket).unwrap_or(0)
    }

    /// Sends a batch; returns how many datagrams the kernel refused.
    #[inline]
    pub fn flush(&self, outbox: &mut NamedOutbox) -> usize {
        outbox.flush(&self.socket)
    }

    /// Blocks until a datagram waits, [`wake`](Self::wake) is called, or the time is over.
    pub fn wait(&self, timeout_ns: u64) {
        self.waker.wait(Some(self.socket.as_fd()), timeout_ns);
    }

    /// Ends a [`wait`](Self::wait) of another thread.
    pub fn wake(&self) {
        self.waker.wake();
    }
}
