//! The reservation of a device's UDP port.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, getsockname, setsockopt, socket,
    sockopt,
};

use crate::device::NetDevice;
use crate::error::XskError;

/// A kernel socket on the device's port.
pub(crate) fn reserve(device: &NetDevice, port: u16) -> Result<OwnedFd, XskError> {
    // Covers both families if the kernel has both.
    match reserve_of(device, "[::]:0", port) {
        Err(XskError::System { .. }) => reserve_of(device, "0.0.0.0:0", port),
        result => result,
    }
}

fn reserve_of(device: &NetDevice, any: &str, port: u16) -> Result<OwnedFd, XskError> {
    let failed = |operation: &'static str| {
        move |errno: Errno| match errno {
            Errno::EADDRINUSE => XskError::PortInUse {
                device: device.name.clone(),
                port,
            },
            Errno::EPERM | Errno::EACCES => XskError::Denied,
            errno => XskError::System {
                device: device.name.clone(),
                operation,
                source: errno.into(),
            },
        }
    };
    let mut address: SocketAddr = any.parse().expect("an address of ours");
    address.set_port(port);
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Datagram, flags, None).map_err(failed("socket"))?;
    setsockopt(&fd, sockopt::BindToDevice, &device.name.clone().into())
        .map_err(failed("SO_BINDTODEVICE"))?;
    // Discards the packets that the program leaves to the kernel for this port, such as fragments.
    setsockopt(&fd, sockopt::RcvBuf, &0).map_err(failed("SO_RCVBUF"))?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address)).map_err(failed("bind"))?;
    Ok(fd)
}

/// The port of a socket.
pub(crate) fn port_of(fd: &OwnedFd) -> Option<u16> {
    let address: SockaddrStorage = getsockname(fd.as_raw_fd()).ok()?;
    let v4 = address.as_sockaddr_in().map(|address| address.port());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.port()))
}
