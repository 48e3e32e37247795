//! A server's datapath: UDP to a port of a device.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use headway_net::datapath::{Datapath, DatapathEnds};
use headway_net::udp::Steering;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, getsockname, setsockopt, socket,
    sockopt,
};

use crate::device::{NetDevice, unmapped};
use crate::error::XskError;
use crate::program::{SteerConfig, SteerProgram, compile};
use crate::queue::{self, DeviceSockets};
use crate::rx::{AttachedProgram, XskRx};
use crate::tx::XskTx;

/// Where to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XskConfig {
    /// The device.
    pub device: String,
    /// The UDP port, on all addresses that the device has at the start; 0 lets the system choose.
    pub port: u16,
    /// By what a request's receive queue is chosen, where there are several.
    pub steering: Steering,
}

/// A device's UDP port, to be [split](Datapath::split) over threads. Requests do not pass the kernel's network stack; ARP,
/// neighbour discovery and everything to other ports do.
#[derive(Debug)]
pub struct XskDatapath {
    config: XskConfig,
    device: NetDevice,
    object: Vec<u8>,
    /// A socket of the kernel's on the port, so that it is nobody else's.
    reserved: OwnedFd,
}

impl XskDatapath {
    /// Takes the port, and compiles the program that steers. Packets come from the [split](Datapath::split) on.
    ///
    /// # Errors
    /// [`XskError`], which says what to do.
    pub fn open(config: XskConfig) -> Result<Self, XskError> {
        let device = NetDevice::find(&config.device)?;
        if device.addresses.is_empty() {
            return Err(XskError::NoAddress {
                device: config.device,
            });
        }
        // Asked first, so that a kernel without these sockets says so before anything is taken.
        crate::system::xdp_socket()
            .map_err(|source| XskError::of_call(&device.name, 0, "socket", source))?;
        let object = compile()?;
        let reserved = reserve(&device, config.port)?;
        let port = port_of(&reserved).unwrap_or(config.port);
        Ok(Self {
            config: XskConfig { port, ..config },
            device,
            object,
            reserved,
        })
    }

    /// The port, which the system may have chosen.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// An address at which the server is asked: the device's first one of IPv4, or its first.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let mut ip4s = self.device.addresses.iter();
        let ip4 = ip4s.find_map(|ip| unmapped(*ip)).map(IpAddr::V4);
        let any = self.device.addresses.first();
        let any = any.map_or(Ipv6Addr::UNSPECIFIED, |ip| Ipv6Addr::from(*ip));
        SocketAddr::new(ip4.unwrap_or(IpAddr::V6(any)), self.config.port)
    }

    /// Opens the sockets and attaches the program.
    fn divide(self, rx_queues: usize, senders: usize) -> Result<DividedDatapath, XskError> {
        let Self {
            config,
            device,
            object,
            reserved,
        } = self;
        let sockets = queue::open(&device, rx_queues, senders)?;
        let steer = SteerConfig {
            sockets: rx_queues as u32,
            port: Some(config.port),
            steering: config.steering,
        };
        let mut program = SteerProgram::load(&object, &device, steer)?;
        for (receiver, ends) in sockets.receivers.iter().enumerate() {
            for (number, end) in ends.iter().enumerate() {
                let place = number * rx_queues + receiver;
                program.set_socket(place as u32, end.socket.fd())?;
            }
        }
        program.attach(&device)?;
        Ok(DividedDatapath {
            sockets,
            program: Arc::new(AttachedProgram { program, reserved }),
            device,
            port: config.port,
        })
    }
}

struct DividedDatapath {
    sockets: DeviceSockets,
    program: Arc<AttachedProgram>,
    device: NetDevice,
    port: u16,
}

impl Datapath for XskDatapath {
    type Rx = XskRx;
    type Tx = XskTx;

    fn split(self, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds<XskRx, XskTx>> {
        if rx_queues == 0 {
            let what = "an AF_XDP datapath needs at least one receive queue";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let divided = self.divide(rx_queues, tx)?;
        let DeviceSockets { receivers, senders } = divided.sockets;
        let rxs = receivers
            .into_iter()
            .map(|ends| XskRx::new(ends, &divided.program).map(Arc::new))
            .collect::<io::Result<_>>()?;
        let txs = senders
            .into_iter()
            .map(|end| XskTx::new(end, divided.device.mac, divided.port))
            .collect::<io::Result<_>>()?;
        Ok(DatapathEnds { rxs, txs })
    }
}

/// A socket of the kernel's on the device's port.
fn reserve(device: &NetDevice, port: u16) -> Result<OwnedFd, XskError> {
    // Of both families where there are both.
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
    // What the program leaves to the kernel for this port, such as fragments, is for nobody.
    setsockopt(&fd, sockopt::RcvBuf, &0).map_err(failed("SO_RCVBUF"))?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address)).map_err(failed("bind"))?;
    Ok(fd)
}

fn port_of(fd: &OwnedFd) -> Option<u16> {
    let address: SockaddrStorage = getsockname(fd.as_raw_fd()).ok()?;
    let v4 = address.as_sockaddr_in().map(|address| address.port());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.port()))
}
