//! The client's socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};

use crate::error::LoadError;
use crate::load::ReplySource;

/// Replies wait here while the client sleeps until the next send: 8 MiB hold 10 000 small ones.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// A socket that sends to one server.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    pub(crate) udp: UdpSocket,
    /// The target's address; `None` where the socket is connected, so that the kernel drops other senders' datagrams.
    pub(crate) unconnected_to: Option<SocketAddr>,
    /// Whether the kernel stamps arriving datagrams.
    pub(crate) stamped: bool,
}

impl ClientSocket {
    pub(crate) fn open(target: SocketAddr, replies_of: ReplySource) -> Result<Self, LoadError> {
        let failed = |operation| {
            move |source: io::Error| LoadError::Socket {
                target,
                operation,
                source,
            }
        };
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let udp = UdpSocket::bind(any).map_err(failed("bind"))?;
        let unconnected_to = match replies_of {
            ReplySource::Target => {
                udp.connect(target).map_err(failed("connect"))?;
                None
            }
            ReplySource::Anyone => Some(target),
        };
        enlarge_receive_buffer(&udp).map_err(failed("SO_RCVBUF"))?;
        let stamped = setsockopt(&udp, sockopt::ReceiveTimestampns, &true).is_ok();
        Ok(Self {
            udp,
            unconnected_to,
            stamped,
        })
    }
}

/// Beyond the system's limit if privileged, else up to it.
fn enlarge_receive_buffer(udp: &UdpSocket) -> io::Result<()> {
    setsockopt(udp, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .or_else(|_| setsockopt(udp, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES))?;
    Ok(())
}
