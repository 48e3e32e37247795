//! IPv4 and IPv6 over Ethernet: packets, neighbours, ping.

pub(crate) mod control;
mod discovery;
pub(crate) mod egress;
pub(crate) mod neighbours;
pub(crate) mod packet;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::Mac;

/// The addresses of an application, and its networks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnAddresses {
    pub(crate) mac: Mac,
    pub(crate) ip: Ipv4Addr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Option<Ipv4Addr>,
    pub(crate) ip6: Option<Ipv6Addr>,
    pub(crate) prefix6: u8,
    pub(crate) gateway6: Option<Ipv6Addr>,
    pub(crate) mtu: usize,
}

impl OwnAddresses {
    /// The own address of the family of another.
    pub(crate) fn of_family(&self, other: IpAddr) -> Option<IpAddr> {
        match other {
            IpAddr::V4(_) => Some(self.ip.into()),
            IpAddr::V6(_) => self.ip6.map(IpAddr::from),
        }
    }

    pub(crate) fn is_own(&self, ip: IpAddr) -> bool {
        self.of_family(ip) == Some(ip)
    }

    /// Whether packets to an address go to it directly.
    pub(crate) fn is_neighbour(&self, ip: IpAddr) -> bool {
        self.next_hop(ip) == Some(ip)
    }

    /// The neighbour by which packets go to an address: itself or a gateway.
    pub(crate) fn next_hop(&self, to: IpAddr) -> Option<IpAddr> {
        match to {
            IpAddr::V4(to) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.prefix))
                    .unwrap_or(0);
                let is_here = (to.to_bits() ^ self.ip.to_bits()) & mask == 0;
                let gateway = if is_here { Some(to) } else { self.gateway };
                gateway.map(IpAddr::from)
            }
            IpAddr::V6(to) => {
                let own = self.ip6?;
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.prefix6))
                    .unwrap_or(0);
                let is_here = (to.to_bits() ^ own.to_bits()) & mask == 0;
                let is_here = is_here || to.is_unicast_link_local();
                let gateway = if is_here { Some(to) } else { self.gateway6 };
                gateway.map(IpAddr::from)
            }
        }
    }
}

/// Whether packets can be sent to an address: not to 0, several, or all.
pub(crate) fn is_host(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}
