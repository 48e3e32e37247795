//! Flows, and what is derived from them by secret keys: the places in tables, first sequence numbers, the offsets of timestamps.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use super::segment::SequenceNumber;
use super::time::{MILLISECOND_NS, SECOND_NS};

/// The addresses and ports of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowKey {
    pub(crate) local_ip: IpAddr,
    pub(crate) remote_ip: IpAddr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

impl FlowKey {
    pub(crate) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.remote_ip, self.remote_port)
    }

    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local_ip, self.local_port)
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // Few and whole words: a packet is looked up by it.
        match (self.local_ip, self.remote_ip) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                hasher.write_u64(u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits()));
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                hasher.write_u128(local.to_bits());
                hasher.write_u128(remote.to_bits());
            }
            (local, remote) => (local, remote).hash(hasher),
        }
        hasher.write_u32(u32::from(self.local_port) << 16 | u32::from(self.remote_port));
    }
}

/// The keys of an application's stack: whoever does not know them cannot choose flows that share a place in a table, nor guess sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowSecrets([u64; 2]);

impl FlowSecrets {
    pub(crate) fn new(seed: [u64; 2]) -> Self {
        Self(seed)
    }

    /// A number for a purpose, which tells nothing of the keys.
    pub(crate) fn derive(&self, purpose: u64) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write_u64(purpose);
        hasher.finish()
    }

    /// The hash of a flow, and of `purpose`.
    pub(crate) fn hash(&self, purpose: u64, key: &FlowKey) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write_u64(purpose);
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// The hash of a flow by which it is looked up.
    pub(crate) fn flow_hash(&self, key: &FlowKey) -> u64 {
        self.hash(0, key)
    }

    /// The first sequence number of a connection (RFC 6528): that of a later connection of the flow is higher.
    pub(crate) fn first_sequence(&self, key: &FlowKey, now_ns: u64) -> SequenceNumber {
        let clock = (now_ns / 4000) as u32;
        clock.wrapping_add(self.hash(1, key) as u32)
    }

    /// The value of the timestamps option. It grows by 1 each millisecond, over all connections of a flow (RFC 7323, 5.4).
    pub(crate) fn timestamp(&self, key: &FlowKey, now_ns: u64) -> u32 {
        self.timestamp_offset(key)
            .wrapping_add(timestamp_clock(now_ns))
    }

    pub(crate) fn timestamp_offset(&self, key: &FlowKey) -> u32 {
        self.hash(2, key) as u32
    }

    /// The code of a SYN cookie over what it says, and the minute.
    pub(crate) fn cookie_code(
        &self,
        key: &FlowKey,
        remote_first: SequenceNumber,
        meaning: u8,
        minute: u64,
    ) -> u32 {
        let purpose = 3 | u64::from(meaning) << 8 | u64::from(remote_first) << 16 | minute << 48;
        self.hash(purpose, key) as u32 >> 8
    }
}

/// The clock of timestamps.
pub(crate) fn timestamp_clock(now_ns: u64) -> u32 {
    (now_ns / MILLISECOND_NS) as u32
}

/// The clock of SYN cookies: each counts for one to two of these minutes.
pub(crate) fn cookie_minute(now_ns: u64) -> u64 {
    now_ns / (60 * SECOND_NS)
}

/// SipHash with the secret keys.
impl BuildHasher for FlowSecrets {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0[0]);
        hasher.write_u64(self.0[1]);
        hasher
    }
}
