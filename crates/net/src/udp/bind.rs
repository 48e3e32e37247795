//! Binding UDP sockets, with errors that name the remedy.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};

use super::options;

/// Why a UDP port could not be bound.
#[derive(thiserror::Error)]
pub enum BindError {
    /// Another socket has the port.
    #[error(
        "cannot bind udp://{addr}: another process has the port (`ss -ulnp sport = :{}` names it); \
         stop that one, or choose another port, or port 0 for any",
        addr.port()
    )]
    InUse {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The address belongs to no interface of this machine.
    #[error(
        "cannot bind udp://{addr}: no interface of this machine has that address (`ip addr` lists \
         them); use {} for all", all_addresses(*addr)
    )]
    NotLocal {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The port is reserved for privileged processes.
    #[error(
        "cannot bind udp://{addr}: permission denied; use a port above 1023 or grant CAP_NET_BIND_SERVICE"
    )]
    Denied {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The process has reached its limit of open files. A receive queue takes two of them.
    #[error(
        "cannot bind udp://{addr}: this process may not open more files, and each receive queue takes two: raise the limit \
         (`ulimit -n`), or choose fewer workers"
    )]
    Files {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// Anything else.
    #[error("cannot bind udp://{addr}: {operation}: {source}")]
    Other {
        /// The address asked for.
        addr: SocketAddr,
        /// The system call that failed.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

headway_words::debug_is_display!(BindError);

/// A socket with exclusive use of its port.
pub(super) fn exclusive(addr: SocketAddr) -> Result<UdpSocket, BindError> {
    let fd = open(addr)?;
    bind_to(fd, addr)
}

/// A further socket on a port that the first one shares.
pub(super) fn shared(addr: SocketAddr) -> Result<UdpSocket, BindError> {
    let fd = open(addr)?;
    setsockopt(&fd, sockopt::ReusePort, &true).map_err(other(addr, "SO_REUSEPORT"))?;
    bind_to(fd, addr)
}

pub(super) fn local_addr(socket: &UdpSocket, asked: SocketAddr) -> Result<SocketAddr, BindError> {
    let operation = "getsockname";
    socket.local_addr().map_err(|source| BindError::Other {
        addr: asked,
        operation,
        source,
    })
}

/// The wildcard address of this family.
fn all_addresses(addr: SocketAddr) -> SocketAddr {
    let ip = if addr.is_ipv4() {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::from(Ipv6Addr::UNSPECIFIED)
    };
    SocketAddr::new(ip, addr.port())
}

fn open(addr: SocketAddr) -> Result<OwnedFd, BindError> {
    let family = if addr.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, SockType::Datagram, flags, None).map_err(other(addr, "socket"))?;
    if addr.is_ipv6() {
        // The system's default varies. Servers expect that the wildcard takes both families.
        setsockopt(&fd, sockopt::Ipv6V6Only, &false).map_err(other(addr, "IPV6_V6ONLY"))?;
    }
    if addr.ip().is_unspecified() {
        // The response can use a datagram's destination address as its source.
        tell_arrivals(&fd, addr)?;
    }
    options::enlarge_receive_buffer(&fd).map_err(other(addr, "SO_RCVBUF"))?;
    Ok(fd)
}

/// Has the kernel report each datagram's destination address and the interface by which it came.
pub(super) fn tell_arrivals(socket: &impl AsFd, addr: SocketAddr) -> Result<(), BindError> {
    match addr {
        SocketAddr::V4(_) => {
            setsockopt(socket, sockopt::Ipv4PacketInfo, &true).map_err(other(addr, "IP_PKTINFO"))
        }
        SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)
            .map_err(other(addr, "IPV6_RECVPKTINFO")),
    }
}

fn bind_to(fd: OwnedFd, addr: SocketAddr) -> Result<UdpSocket, BindError> {
    bind(fd.as_raw_fd(), &SockaddrStorage::from(addr)).map_err(|errno| match errno {
        Errno::EADDRINUSE => BindError::InUse { addr },
        Errno::EADDRNOTAVAIL => BindError::NotLocal { addr },
        Errno::EACCES | Errno::EPERM => BindError::Denied { addr },
        errno => other(addr, "bind")(errno),
    })?;
    Ok(UdpSocket::from(fd))
}

fn other(addr: SocketAddr, operation: &'static str) -> impl Fn(Errno) -> BindError {
    move |errno| match errno {
        Errno::EMFILE => BindError::Files { addr },
        errno => BindError::Other {
            addr,
            operation,
            source: errno.into(),
        },
    }
}

/// An error of the system, as one that names the remedy where the process has too many files open.
pub(super) fn of_files(addr: SocketAddr, error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(Errno::EMFILE as i32) {
        io::Error::other(BindError::Files { addr })
    } else {
        error
    }
}
