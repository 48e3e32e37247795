//! A network device: its number, addresses and queues.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

use crate::error::XskError;
use crate::mac::MacAddress;
use crate::system;

/// The headroom that the kernel leaves before a packet in its frame, in bytes.
const HEADROOM: u32 = 256;
const SMALL_FRAME: usize = 2048;
/// The largest frame: a page.
const LARGE_FRAME: usize = 4096;
/// Ethernet header and two VLAN tags.
const LINK_HEADER: u32 = 22;

/// A device of this network namespace.
#[derive(Debug, Clone)]
pub(crate) struct NetDevice {
    pub(crate) name: String,
    pub(crate) ifindex: u32,
    pub(crate) mac: MacAddress,
    pub(crate) mtu: u32,
    /// Receive queues.
    pub(crate) queues: u32,
    /// IP addresses, IPv4 ones mapped.
    pub(crate) addresses: Vec<[u8; 16]>,
}

impl NetDevice {
    /// Looks the device up.
    pub(crate) fn find(name: &str) -> Result<Self, XskError> {
        let no_device = || XskError::NoDevice {
            device: name.to_owned(),
        };
        let ifindex = if_nametoindex(name).map_err(|_| no_device())?;
        let mut device = Self {
            name: name.to_owned(),
            ifindex,
            mac: MacAddress([0; 6]),
            mtu: system::mtu(name).map_err(|_| no_device())?,
            queues: system::receive_queues(name),
            addresses: Vec::new(),
        };
        let addresses = getifaddrs().map_err(|_| no_device())?;
        for entry in addresses.filter(|entry| entry.interface_name == name) {
            let Some(address) = entry.address else {
                continue;
            };
            if let Some(link) = address.as_link_addr() {
                device.mac = link.addr().map_or(device.mac, MacAddress);
            } else if let Some(v4) = address.as_sockaddr_in() {
                device.addresses.push(mapped(IpAddr::V4(v4.ip())));
            } else if let Some(v6) = address.as_sockaddr_in6() {
                device.addresses.push(mapped(IpAddr::V6(v6.ip())));
            }
        }
        Ok(device)
    }

    /// Looks up a device whose frames begin with an Ethernet header, by which the program and the senders here read and write them.
    pub(crate) fn find_ethernet(name: &str) -> Result<Self, XskError> {
        let device = Self::find(name)?;
        let link_type = system::link_type(name);
        let link_type =
            link_type.map_err(|source| XskError::of_call(name, 0, "link type", source))?;
        if link_type != libc::ARPHRD_ETHER {
            return Err(XskError::NotEthernet {
                device: device.name,
                link_type,
            });
        }
        Ok(device)
    }

    /// What must stay as it is.
    pub(crate) fn watch(&self) -> DeviceWatch {
        DeviceWatch {
            name: self.name.clone(),
            ifindex: self.ifindex,
            mac: self.mac,
            queues: self.queues,
            mtu: self.mtu,
            frame_bytes: self.frame_bytes(),
        }
    }

    /// Bytes of a frame that has room for the device's packets, as far as a page has.
    pub(crate) fn frame_bytes(&self) -> usize {
        let needed = self.mtu.saturating_add(HEADROOM + LINK_HEADER) as usize;
        if needed <= SMALL_FRAME {
            SMALL_FRAME
        } else {
            LARGE_FRAME
        }
    }

    /// Looks up a device for UDP service. It must carry Ethernet frames and have an address, and the kernel must support these sockets.
    pub(crate) fn find_reachable(name: &str) -> Result<Self, XskError> {
        let device = Self::find_ethernet(name)?;
        if device.addresses.is_empty() {
            return Err(XskError::NoAddress {
                device: device.name,
            });
        }
        // Checked first, so that a kernel without these sockets fails before the port is taken.
        system::xdp_socket()
            .map_err(|source| XskError::of_call(&device.name, 0, "socket", source))?;
        Ok(device)
    }

    /// The device's first IPv4 address, or else its first address.
    pub(crate) fn address(&self) -> IpAddr {
        let mut ip4s = self.addresses.iter();
        let ip4 = ip4s.find_map(|ip| unmapped(*ip)).map(IpAddr::V4);
        let any = self.addresses.first();
        let any = any.map_or(Ipv6Addr::UNSPECIFIED, |ip| Ipv6Addr::from(*ip));
        ip4.unwrap_or(IpAddr::V6(any))
    }

    /// The device's first address of that family that is not link-local.
    pub(crate) fn address_towards(&self, host: IpAddr) -> Option<[u8; 16]> {
        let is_link_local = |ip: &[u8; 16]| ip[0] == 0xfe && ip[1] & 0xc0 == 0x80;
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|ip| unmapped(*ip).is_some() == host.is_ipv4() && !is_link_local(ip))
    }
}

/// What a part needs of its device to stay as it was when the part opened it. Any thread may look.
#[derive(Debug, Clone)]
pub struct DeviceWatch {
    name: String,
    ifindex: u32,
    mac: MacAddress,
    queues: u32,
    mtu: u32,
    /// The frames of packet memory, which were chosen by the MTU.
    frame_bytes: usize,
}

impl DeviceWatch {
    /// Whether every packet still comes.
    ///
    /// # Errors
    /// [`XskError::Removed`], [`XskError::QueuesChanged`], [`XskError::AddressChanged`] and [`XskError::MtuRaised`].
    pub fn check(&self) -> Result<(), XskError> {
        let device = self.name.clone();
        let now = NetDevice::find(&device).ok();
        // Asked last: what is told of a device that goes meanwhile is not its own.
        let is_there = || if_nametoindex(device.as_str()) == Ok(self.ifindex);
        let Some(now) = now.filter(|now| now.ifindex == self.ifindex && is_there()) else {
            return Err(XskError::Removed { device });
        };
        if now.queues != self.queues {
            return Err(XskError::QueuesChanged {
                device,
                were: self.queues,
                found: now.queues,
            });
        }
        if now.mac != self.mac {
            return Err(XskError::AddressChanged {
                device,
                was: self.mac,
                found: now.mac,
            });
        }
        // The kernel drops packets that no frame has room for, and nobody counts them here.
        if now.frame_bytes() > self.frame_bytes {
            return Err(XskError::MtuRaised {
                device,
                was: self.mtu,
                found: now.mtu,
            });
        }
        Ok(())
    }
}

/// An address in 16 bytes, an IPv4 one mapped.
pub(crate) fn mapped(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The IPv4 address that is mapped into these bytes, if one is.
#[inline]
pub(crate) fn unmapped(ip: [u8; 16]) -> Option<Ipv4Addr> {
    Ipv6Addr::from(ip).to_ipv4_mapped()
}
