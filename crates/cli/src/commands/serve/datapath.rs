//! The datapath of a server, chosen at its start: the kernel's UDP, or a device's packets by `AF_XDP`.

use crate::device_port::DevicePort;
use headway::config::address;
use headway_net::datapath::{Datapath, DatapathEnds};
use headway_net::udp::{Steering, UdpDatapath};
use headway_xsk::{DeviceWatch, XskConfig, XskDatapath, XskError};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// What `--listen` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListenAddress {
    Udp(SocketAddr),
    /// All addresses of a device.
    Xdp(DevicePort),
}

impl ListenAddress {
    /// From `udp://HOST:PORT` or `xdp://DEVICE:PORT`.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        match DevicePort::parse(url) {
            Some(device) => device.map(Self::Xdp),
            None => {
                let other = |why: String| format!("{why}, or xdp://DEVICE:PORT");
                address(url).map(Self::Udp).map_err(other)
            }
        }
    }

    /// Binds the port. An error names the remedy.
    pub(super) fn open(&self, steering: Steering) -> Result<ServeDatapath, String> {
        match self {
            Self::Udp(addr) => UdpDatapath::bind(*addr)
                .map(|udp| ServeDatapath::Udp(udp.with_steering(steering)))
                .map_err(|error| error.to_string()),
            Self::Xdp(DevicePort { device, port }) => {
                let config = XskConfig {
                    device: device.clone(),
                    port: *port,
                    steering,
                };
                let opened = XskDatapath::open(config).map_err(|error| error.to_string());
                opened.map(ServeDatapath::Xdp)
            }
        }
    }

    /// The address as a client would write it, now that the port is known. Of a device the URL names the device.
    pub(super) fn shown(&self, at: SocketAddr) -> impl fmt::Display + use<> {
        match self {
            Self::Udp(_) => format!("udp://{at}"),
            Self::Xdp(DevicePort { device, .. }) => DevicePort {
                device: device.clone(),
                port: at.port(),
            }
            .to_string(),
        }
    }
}

/// Whether the datapath could not be divided for a reason that is `AF_XDP`'s own, and says what to do.
pub(super) fn is_of_device(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<XskError>())
}

/// A bound port.
#[derive(Debug)]
pub(super) enum ServeDatapath {
    Udp(UdpDatapath),
    Xdp(XskDatapath),
}

impl ServeDatapath {
    /// An address at which the server receives requests.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Udp(udp) => udp.local_addr(),
            Self::Xdp(xdp) => xdp.address(),
        }
    }

    /// What the device must stay like, if there is one.
    pub(super) fn watch(&self) -> Option<DeviceWatch> {
        match self {
            Self::Udp(_) => None,
            Self::Xdp(xdp) => Some(xdp.watch()),
        }
    }
}

impl Datapath for ServeDatapath {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        match *self {
            Self::Udp(udp) => Box::new(udp).split(rx_queues, tx),
            Self::Xdp(xdp) => Box::new(xdp).split(rx_queues, tx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_an_address_or_a_device() {
        let xdp = |device: &str, port| {
            let device = device.to_owned();
            ListenAddress::Xdp(DevicePort { device, port })
        };
        assert_eq!(
            ListenAddress::parse("xdp://eth0:7000"),
            Ok(xdp("eth0", 7000))
        );
        assert_eq!(ListenAddress::parse("xdp://eth0.7:0"), Ok(xdp("eth0.7", 0)));
        let udp = ListenAddress::parse("udp://127.0.0.1:7");
        assert_eq!(udp, Ok(ListenAddress::Udp("127.0.0.1:7".parse().unwrap())));
        for url in [
            "xdp://eth0",
            "xdp://:7000",
            "xdp://eth0:x",
            "xdp://eth0:70000",
        ] {
            let said = ListenAddress::parse(url).unwrap_err();
            assert!(
                said.ends_with("xdp://DEVICE:PORT, as in xdp://eth0:7000"),
                "{said}"
            );
        }
        let said = ListenAddress::parse("tcp://a:1").unwrap_err();
        assert!(
            said.ends_with("udp://HOST:PORT, or xdp://DEVICE:PORT"),
            "{said}"
        );
    }
}
