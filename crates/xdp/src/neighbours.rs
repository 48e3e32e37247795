//! The kernel's path to a server, read by netlink: its route, the Ethernet address of the next hop, and that of the interface.

use crate::Neighbour;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Why a server is unreachable.
#[derive(thiserror::Error)]
pub enum NeighbourError {
    /// The kernel did not answer, or knows no route.
    #[error(
        "the kernel has no route to {server} ({source}): `ip route get {server}` shows what it has"
    )]
    NoRoute {
        /// The server.
        server: IpAddr,
        /// The kernel's error.
        source: Errno,
    },
    /// The address is one of this machine.
    #[error(
        "{server} is an address of this machine, which no interface leads to: name servers of other machines, or have the switch listen on ADDR:PORT without XDP"
    )]
    Own {
        /// The server.
        server: IpAddr,
    },
    /// The next hop does not answer.
    #[error(
        "{hop} on {interface} does not say its Ethernet address in time: is it up, and on this network?"
    )]
    Silent {
        /// The server, or the router before it.
        hop: IpAddr,
        /// The interface.
        interface: String,
    },
    /// The interface has no Ethernet address.
    #[error("{interface}, by which the kernel reaches {server}, is no Ethernet interface")]
    NotEthernet {
        /// The server.
        server: IpAddr,
        /// The interface.
        interface: String,
    },
}

headway_words::debug_is_display!(NeighbourError);

// linux/rtnetlink.h, linux/neighbour.h, linux/if_link.h.
const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
pub(crate) const HEADER: usize = 16;
const ROUTE_BODY: usize = 12;
const NEIGH_BODY: usize = 12;
const LINK_BODY: usize = 16;
pub(crate) const LINK_ATTRIBUTES: usize = HEADER + LINK_BODY;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const RTN_LOCAL: u8 = 2;
/// Reachable, stale, delay, probe, no-ARP, permanent: the entry has an address.
const STATES_WITH_ADDRESS: u16 = 0xde;
const STALE: u16 = 0x04;

/// The kernel's current path to a server. If the next hop's address is unknown, this makes the kernel ask for it, and waits at most for `patience`. If
/// nothing has confirmed the address lately, the kernel asks too, and a later call tells what it found.
///
/// # Errors
/// [`NeighbourError`] when there is no route, the next hop does not answer, or the interface is not Ethernet.
pub fn neighbour_of(server: SocketAddr, patience: Duration) -> Result<Neighbour, NeighbourError> {
    let ip = server.ip();
    let no_route = |source| NeighbourError::NoRoute { server: ip, source };
    let kernel = Kernel::open(SockProtocol::NetlinkRoute).map_err(no_route)?;
    let route = kernel.route(ip).map_err(no_route)?;
    if route.is_local {
        return Err(NeighbourError::Own { server: ip });
    }
    let link = kernel.link(route.ifindex).map_err(no_route)?;
    let Some(own_mac) = link.mac else {
        return Err(NeighbourError::NotEthernet {
            server: ip,
            interface: link.name,
        });
    };
    let begun = Instant::now();
    let mac = loop {
        if let Some(known) = kernel.mac(route.ifindex, route.hop) {
            // The program's own packets do not make the kernel doubt the address; one of its own does, and it asks the host.
            if known.is_stale {
                provoke(server);
            }
            break known.mac;
        }
        // A host that did not answer is asked again, also where nobody waits for it now.
        provoke(server);
        if begun.elapsed() >= patience {
            return Err(NeighbourError::Silent {
                hop: route.hop,
                interface: link.name,
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok(Neighbour {
        address: server,
        mac,
        ifindex: route.ifindex,
        own_mac,
    })
}

/// The number of the interface by which the kernel reaches this address; `None` for an address of this machine. From outside the kernel takes no
/// packet in the name of such an address.
///
/// # Errors
/// [`NeighbourError::NoRoute`]
pub fn interface_to(server: IpAddr) -> Result<Option<u32>, NeighbourError> {
    let no_route = |source| NeighbourError::NoRoute { server, source };
    let route = Kernel::open(SockProtocol::NetlinkRoute).and_then(|kernel| kernel.route(server));
    let route = route.map_err(no_route)?;
    Ok((!route.is_local).then_some(route.ifindex))
}

/// Sends an empty datagram, so that the kernel asks for the next hop's address. Servers drop it as truncated.
fn provoke(server: SocketAddr) {
    let own: SocketAddr = if server.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    // A failure here shows as a missing answer.
    let _ = UdpSocket::bind(own).and_then(|socket| socket.send_to(&[], server));
}

struct Route {
    ifindex: u32,
    /// The server, or the router before it.
    hop: IpAddr,
    is_local: bool,
}

struct KnownMac {
    mac: [u8; 6],
    /// Nothing has confirmed it lately, and the kernel waits for a packet of its own to ask.
    is_stale: bool,
}

pub(crate) struct EthernetLink {
    name: String,
    pub(crate) mac: Option<[u8; 6]>,
}

/// A netlink socket.
pub(crate) struct Kernel(OwnedFd);

impl Kernel {
    pub(crate) fn open(protocol: SockProtocol) -> Result<Self, Errno> {
        let kind = SockType::Raw;
        socket(
            AddressFamily::Netlink,
            kind,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )
        .map(Self)
    }

    fn route(&self, to: IpAddr) -> Result<Route, Errno> {
        let octets = octets(to);
        let mut body = [0; ROUTE_BODY];
        body[0] = family(to);
        body[1] = 8 * octets.len() as u8;
        let answer = self.ask(RTM_GETROUTE, &body, Some((RTA_DST, &octets)))?;
        let attribute = |kind| attribute(&answer, HEADER + ROUTE_BODY, kind);
        let ifindex = attribute(RTA_OIF).and_then(|bytes| bytes.try_into().ok());
        Ok(Route {
            ifindex: u32::from_ne_bytes(ifindex.ok_or(Errno::ENETUNREACH)?),
            hop: attribute(RTA_GATEWAY).and_then(ip_of).unwrap_or(to),
            is_local: answer[HEADER + 7] == RTN_LOCAL,
        })
    }

    /// The Ethernet address of a neighbour, if it is known.
    fn mac(&self, ifindex: u32, hop: IpAddr) -> Option<KnownMac> {
        let mut body = [0; NEIGH_BODY];
        body[0] = family(hop);
        body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        let octets = octets(hop);
        let answer = self
            .ask(RTM_GETNEIGH, &body, Some((NDA_DST, &octets)))
            .ok()?;
        let state = u16::from_ne_bytes([answer[HEADER + 8], answer[HEADER + 9]]);
        if state & STATES_WITH_ADDRESS == 0 {
            return None;
        }
        let mac = attribute(&answer, HEADER + NEIGH_BODY, NDA_LLADDR)?;
        Some(KnownMac {
            mac: mac.try_into().ok()?,
            is_stale: state & STALE != 0,
        })
    }

    /// What the kernel tells of an interface. Attributes begin at [`LINK_ATTRIBUTES`].
    pub(crate) fn ask_of_link(&self, ifindex: u32) -> Result<Vec<u8>, Errno> {
        let mut body = [0; LINK_BODY];
        body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        self.ask(RTM_GETLINK, &body, None)
    }

    pub(crate) fn link(&self, ifindex: u32) -> Result<EthernetLink, Errno> {
        let answer = self.ask_of_link(ifindex)?;
        let attribute = |kind| attribute(&answer, LINK_ATTRIBUTES, kind);
        let name = attribute(IFLA_IFNAME).unwrap_or_default();
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        Ok(EthernetLink {
            name: String::from_utf8_lossy(name).into_owned(),
            mac: attribute(IFLA_ADDRESS)
                .and_then(|bytes| bytes.try_into().ok())
                .filter(|mac| *mac != [0; 6]),
        })
    }

    /// Sends one request; returns the first message of the answer, at least as long as its fixed part.
    pub(crate) fn ask(
        &self,
        kind: u16,
        body: &[u8],
        attribute: Option<(u16, &[u8])>,
    ) -> Result<Vec<u8>, Errno> {
        let mut message = vec![0; HEADER];
        message.extend(body);
        if let Some((kind, value)) = attribute {
            message.extend((4 + value.len() as u16).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
        }
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        send(self.0.as_raw_fd(), &message, MsgFlags::empty())?;
        let mut answer = vec![0; 32 * 1024];
        let received = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        answer.truncate(received);
        if received < HEADER + 4 {
            return Err(Errno::EBADMSG);
        }
        if u16::from_ne_bytes([answer[4], answer[5]]) == NLMSG_ERROR {
            let error = answer[HEADER..HEADER + 4].try_into().expect("four bytes");
            return Err(Errno::from_raw(-i32::from_ne_bytes(error)));
        }
        if received < HEADER + body.len() {
            return Err(Errno::EBADMSG);
        }
        Ok(answer)
    }
}

/// The value of an attribute; attributes begin at `from`.
pub(crate) fn attribute(message: &[u8], from: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(from..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        // A length below that of its own header ends the search, which would otherwise loop for ever.
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn family(ip: IpAddr) -> u8 {
    let family = match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    family as u8
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn ip_of(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_refused() {
        let error = neighbour_of(([127, 0, 0, 1], 7000).into(), Duration::ZERO).unwrap_err();
        assert!(matches!(error, NeighbourError::Own { .. }), "{error}");
    }

    #[test]
    fn an_address_of_this_machine_has_no_interface_of_its_own() {
        let own = interface_to([127, 0, 0, 1].into());
        assert!(matches!(own, Ok(None)), "{own:?}");
    }

    #[test]
    fn attributes_are_found_and_cut_messages_end_the_search() {
        let mut message = vec![9, 0, 1, 0, 1, 2, 3, 4, 5, 0, 0, 0];
        message.extend([8, 0, 3, 0, 7, 7, 7, 7]);
        assert_eq!(attribute(&message, 0, 1), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(attribute(&message, 0, 3), Some(&[7; 4][..]));
        assert_eq!(attribute(&message, 0, 2), None);
        assert_eq!(attribute(&message[..18], 0, 3), None);
        assert_eq!(attribute(&[0; 8], 0, 3), None);
    }
}
