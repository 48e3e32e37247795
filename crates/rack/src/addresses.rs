//! The addresses of the rack's servers, by index and back.

use headway_net::slot::Peer;
use headway_policy::rack::ServerId;
use std::net::SocketAddr;

/// Why a list of servers is refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The list is empty.
    #[error("a rack needs a server: name at least one")]
    None,
    /// There are more servers than a server's index can name.
    #[error("{found} servers: a switch has at most {}", ServerAddresses::MOST)]
    TooMany {
        /// The number of servers in the list.
        found: usize,
    },
    /// Two entries have the same address.
    #[error("server {server} is listed twice: remove one of the two entries")]
    Twice {
        /// The address.
        server: SocketAddr,
    },
    /// No datagram reaches such an address.
    #[error("server {server} has no address or port to send to: name both")]
    Unspecified {
        /// The address.
        server: SocketAddr,
    },
}

headway_words::debug_is_display!(AddressError);

/// The servers' addresses, with a hash table to find a server by its address. A place without a server has none.
#[derive(Debug, Clone)]
pub struct ServerAddresses {
    /// By place; [`Peer::NOBODY`] without a server.
    peers: Vec<Peer>,
    /// Open addressing; at most a quarter is in use. An unused entry is [`Self::FREE`].
    buckets: Vec<u16>,
}

impl ServerAddresses {
    /// Servers that a switch has at most.
    pub const MOST: usize = 4096;

    const FREE: u16 = u16::MAX;

    /// The servers in this order: the first is `ServerId(0)`.
    ///
    /// # Errors
    /// [`AddressError`] when there is no server, too many, one twice, or one without address or port.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, AddressError> {
        let found = servers.len();
        if found == 0 {
            return Err(AddressError::None);
        }
        if found > Self::MOST {
            return Err(AddressError::TooMany { found });
        }
        let mut table = Self {
            peers: servers.iter().map(|&server| Peer::from(server)).collect(),
            buckets: vec![Self::FREE; 4 * found.next_power_of_two()],
        };
        for (number, &server) in servers.iter().enumerate() {
            if server.ip().is_unspecified() || server.port() == 0 {
                return Err(AddressError::Unspecified { server });
            }
            if table.find(server.into()).is_some() {
                return Err(AddressError::Twice { server });
            }
            table.enter(number);
        }
        Ok(table)
    }

    /// So many places without a server.
    #[must_use]
    pub fn vacant(places: usize) -> Self {
        Self {
            peers: vec![Peer::NOBODY; places],
            buckets: vec![Self::FREE; 4 * places.next_power_of_two()],
        }
    }

    /// Puts a server at this address into a place, or nobody. The caller keeps addresses apart.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn put(&mut self, place: ServerId, server: Option<SocketAddr>) {
        self.peers[place.index()] = server.map_or(Peer::NOBODY, Peer::from);
        self.buckets.fill(Self::FREE);
        for number in 0..self.peers.len() {
            if self.peers[number] != Peer::NOBODY {
                self.enter(number);
            }
        }
    }

    fn enter(&mut self, number: usize) {
        let mut bucket = self.first_bucket(self.peers[number]);
        while self.buckets[bucket] != Self::FREE {
            bucket = self.next_bucket(bucket);
        }
        self.buckets[bucket] = number as u16;
    }

    #[inline]
    fn first_bucket(&self, peer: Peer) -> usize {
        peer.hash_word() as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn next_bucket(&self, bucket: usize) -> usize {
        (bucket + 1) & (self.buckets.len() - 1)
    }

    /// The server with this address.
    #[inline]
    #[must_use]
    pub fn find(&self, peer: Peer) -> Option<ServerId> {
        let mut bucket = self.first_bucket(peer);
        loop {
            let number = self.buckets[bucket];
            if number == Self::FREE {
                return None;
            }
            if self.peers[usize::from(number)] == peer {
                return Some(ServerId(number));
            }
            bucket = self.next_bucket(bucket);
        }
    }

    /// The server's address; [`Peer::NOBODY`] for a place without one.
    ///
    /// # Panics
    /// When there is no such place.
    #[inline]
    #[must_use]
    pub fn peer(&self, server: ServerId) -> Peer {
        self.peers[server.index()]
    }

    /// Places of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.peers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn every_server_is_found_and_nobody_else() {
        let servers: Vec<SocketAddr> = (0..1000u32)
            .map(|n| addr(&format!("10.0.{}.{}:{}", n >> 8, n & 255, 7000 + n % 7)))
            .collect();
        let table = ServerAddresses::new(&servers).unwrap();
        for (number, &server) in servers.iter().enumerate() {
            assert_eq!(table.find(server.into()), Some(ServerId(number as u16)));
            assert_eq!(table.peer(ServerId(number as u16)), Peer::from(server));
            let other = SocketAddr::new(server.ip(), 6999);
            assert_eq!(table.find(other.into()), None);
        }
    }

    #[test]
    fn servers_come_into_free_places_and_go() {
        let (one, two) = (addr("10.0.0.1:7"), addr("10.0.0.2:7"));
        let mut table = ServerAddresses::vacant(3);
        table.put(ServerId(0), Some(one));
        assert_eq!(
            (table.count(), table.find(one.into())),
            (3, Some(ServerId(0)))
        );
        assert_eq!(table.find(Peer::NOBODY), None, "nobody is no server");
        table.put(ServerId(2), Some(two));
        table.put(ServerId(0), None);
        assert_eq!(table.find(one.into()), None);
        assert_eq!(table.find(two.into()), Some(ServerId(2)));
        table.put(ServerId(0), Some(one));
        assert_eq!(table.find(one.into()), Some(ServerId(0)));
    }

    #[test]
    fn lists_that_are_none_are_refused_with_the_address() {
        let refused = |servers: &[&str]| {
            let servers: Vec<SocketAddr> = servers.iter().map(|text| addr(text)).collect();
            ServerAddresses::new(&servers).unwrap_err()
        };
        assert_eq!(refused(&[]), AddressError::None);
        let server = addr("10.0.0.1:7");
        assert_eq!(
            refused(&["10.0.0.1:7", "10.0.0.2:7", "10.0.0.1:7"]),
            AddressError::Twice { server }
        );
        // The same address, written as IPv6.
        assert!(matches!(
            refused(&["10.0.0.1:7", "[::ffff:10.0.0.1]:7"]),
            AddressError::Twice { .. }
        ));
        for none in ["0.0.0.0:7", "[::]:7", "10.0.0.1:0"] {
            let server = addr(none);
            assert_eq!(refused(&[none]), AddressError::Unspecified { server });
        }
        let many = vec![server; ServerAddresses::MOST + 1];
        let found = many.len();
        let error = ServerAddresses::new(&many).unwrap_err();
        assert_eq!(error, AddressError::TooMany { found });
    }
}
