//! Addresses and interfaces of clients, servers and the switch.

use crate::PORT;
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Ip4,
    Ip6,
}

impl Family {
    pub(crate) fn ip(self, net: u8, host: u8) -> IpAddr {
        match self {
            Family::Ip4 => IpAddr::from([10, 0, net, host]),
            Family::Ip6 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, u16::from(net), u16::from(host)]),
        }
    }

    pub(crate) fn own(self) -> SocketAddr {
        SocketAddr::new(self.ip(0, 1), PORT)
    }

    pub(crate) fn server(self, number: usize) -> SocketAddr {
        SocketAddr::new(self.ip(1, number as u8 / 2), 6000 + number as u16)
    }

    pub(crate) fn client(self, number: u32) -> SocketAddr {
        SocketAddr::new(self.ip(2, number as u8 % 40), 9000 + (number % 7) as u16)
    }
}

pub(crate) fn server_mac(number: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, number as u8]
}

/// The interface by which clients are reached, and every second server: loopback.
pub(crate) const CLIENTS_SIDE: u32 = 1;

/// The interface that leads to a server.
pub(crate) fn ifindex_of(number: usize) -> u32 {
    1 + number as u32 % 2
}
