//! Bytes of the packets between agents and the rack. Big endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | `HWRA` |
//! | 4 | version, 2 |
//! | 5 | 1 a report, 2 an answer |
//! | 6–13 | the agent: a number drawn when it began |
//! | 14–21 | the session: 0 while the agent knows none |
//! | 22–29 | a report's number in its session; in an answer that of the report |
//! | 30 … | the report, which begins with the server's address (IPv4 mapped) and port, or the answer |
//! | the last 32 | HMAC-SHA-256 of all before |
//!
//! A message has one encoding: encoding a decoded message gives the same bytes.

use super::key::{AgentKey, MAC_BYTES};
use headway_policy::rack::Bouncing;
use std::net::IpAddr;

const MAGIC: [u8; 4] = *b"HWRA";
const VERSION: u8 = 2;
const REPORT: u8 = 1;
const ANSWER: u8 = 2;
/// The most groups of one server in an order.
const PARTS_MAX: usize = 256;

/// The longest packet: an order of the most groups.
pub const AGENT_PACKET_BYTES_MAX: usize =
    30 + 2 + 1 + 8 + 1 + 2 + PARTS_MAX * 34 + 2 + 256 + MAC_BYTES;

/// Why a packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The packet is cut off, or of another protocol or version.
    #[error("not a packet of an agent or a rack, or of another version")]
    Malformed,
    /// The packet's code belongs to another key.
    #[error("the packet was made with another key")]
    WrongKey,
}

headway_words::debug_is_display!(MessageError);

/// A set of type bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeBytes([u64; 4]);

impl TypeBytes {
    /// Adds a type byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    /// Whether it is in the set.
    #[must_use]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] & 1 << (byte % 64) != 0
    }
}

impl FromIterator<u8> for TypeBytes {
    fn from_iter<T: IntoIterator<Item = u8>>(bytes: T) -> Self {
        let mut set = Self::default();
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

/// An agent's report about its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgentReport {
    /// The agent's number, drawn at random when it began.
    pub agent: u64,
    /// The session; 0 while the agent knows none.
    pub session: u64,
    /// Grows with each report of a session.
    pub counter: u64,
    /// The server's IP address, IPv4 mapped: the one that the report comes from, or the rack drops it.
    pub ip: [u8; 16],
    /// The server's port.
    pub port: u16,
    /// Workers in use.
    pub workers: u16,
    /// Whether the server takes no more requests because it is about to stop.
    pub draining: bool,
    /// The number of the order in force; 0 before the first.
    pub in_force: u64,
    /// Clones dropped so far.
    pub clones_dropped: u64,
    /// Requests handed back so far.
    pub handed_back: u64,
}

/// A group's part of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedPart {
    /// Its types.
    pub types: TypeBytes,
    /// Its workers.
    pub workers: u16,
}

/// A server's duty as the control plane decided it, in type bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderedDuty {
    /// The order's number within its session; above 0.
    pub number: u64,
    /// The requests that the server hands back to the switch.
    pub bouncing: Bouncing,
    /// The server's groups, shortest first; at most 256.
    pub parts: Vec<OrderedPart>,
    /// The known types in ascending order of execution time.
    pub ascending: Vec<u8>,
}

/// The rack's answer to a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RackAnswer {
    /// The agent that it is for.
    pub agent: u64,
    /// The session that the agent is in, or may begin.
    pub session: u64,
    /// The number of the report.
    pub answers: u64,
    /// The switch's port, at the address that the answer comes from.
    pub switch_port: u16,
    /// The server's new duty; `None` when it is in force already, or the session has not begun.
    pub order: Option<OrderedDuty>,
}

/// An address's bytes, IPv4 mapped.
pub(super) fn mapped(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

impl AgentReport {
    /// The packet.
    #[must_use]
    pub fn seal(&self, key: &AgentKey) -> Vec<u8> {
        let mut bytes = head(REPORT, [self.agent, self.session, self.counter]);
        bytes.extend(self.ip);
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(self.workers.to_be_bytes());
        bytes.push(u8::from(self.draining));
        for word in [self.in_force, self.clones_dropped, self.handed_back] {
            bytes.extend(word.to_be_bytes());
        }
        key.seal(bytes)
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// [`MessageError`]
    pub fn open(key: &AgentKey, packet: &[u8]) -> Result<Self, MessageError> {
        let mut fields = PacketFields::of(key, packet, REPORT)?;
        let report = fields.report().ok_or(MessageError::Malformed)?;
        fields.end(report)
    }
}

impl RackAnswer {
    /// The packet.
    ///
    /// # Panics
    /// When the order has more than 256 groups.
    #[must_use]
    pub fn seal(&self, key: &AgentKey) -> Vec<u8> {
        let mut bytes = head(ANSWER, [self.agent, self.session, self.answers]);
        bytes.extend(self.switch_port.to_be_bytes());
        bytes.push(u8::from(self.order.is_some()));
        if let Some(order) = &self.order {
            order.write(&mut bytes);
        }
        key.seal(bytes)
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// [`MessageError`]
    pub fn open(key: &AgentKey, packet: &[u8]) -> Result<Self, MessageError> {
        let mut fields = PacketFields::of(key, packet, ANSWER)?;
        let answer = fields.answer().ok_or(MessageError::Malformed)?;
        fields.end(answer)
    }
}

impl OrderedDuty {
    fn write(&self, bytes: &mut Vec<u8>) {
        assert!(self.parts.len() <= PARTS_MAX, "a type is in one group");
        bytes.extend(self.number.to_be_bytes());
        bytes.push(match self.bouncing {
            Bouncing::Off => 0,
            Bouncing::Longer => 1,
            Bouncing::All => 2,
        });
        bytes.extend((self.parts.len() as u16).to_be_bytes());
        for part in &self.parts {
            bytes.extend(part.workers.to_be_bytes());
            for word in part.types.0 {
                bytes.extend(word.to_be_bytes());
            }
        }
        bytes.extend((self.ascending.len() as u16).to_be_bytes());
        bytes.extend(&self.ascending);
    }
}

fn head(kind: u8, words: [u64; 3]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend(MAGIC);
    bytes.extend([VERSION, kind]);
    for word in words {
        bytes.extend(word.to_be_bytes());
    }
    bytes
}

/// The unread rest of a message.
struct PacketFields<'a>(&'a [u8]);

impl<'a> PacketFields<'a> {
    /// The fields behind the kind, in an authentic packet.
    fn of(key: &AgentKey, packet: &'a [u8], kind: u8) -> Result<Self, MessageError> {
        let rest = packet.strip_prefix(&MAGIC[..]);
        let rest = rest.and_then(|rest| rest.strip_prefix(&[VERSION, kind]));
        if rest.is_none_or(|rest| rest.len() < MAC_BYTES) {
            return Err(MessageError::Malformed);
        }
        let message = key.open(packet).ok_or(MessageError::WrongKey)?;
        Ok(Self(&message[MAGIC.len() + 2..]))
    }

    fn end<T>(self, message: T) -> Result<T, MessageError> {
        if self.0.is_empty() {
            Ok(message)
        } else {
            Err(MessageError::Malformed)
        }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn report(&mut self) -> Option<AgentReport> {
        Some(AgentReport {
            agent: self.u64()?,
            session: self.u64()?,
            counter: self.u64()?,
            ip: self.take()?,
            port: self.u16()?,
            workers: self.u16()?,
            draining: self.flag()?,
            in_force: self.u64()?,
            clones_dropped: self.u64()?,
            handed_back: self.u64()?,
        })
    }

    fn answer(&mut self) -> Option<RackAnswer> {
        Some(RackAnswer {
            agent: self.u64()?,
            session: self.u64()?,
            answers: self.u64()?,
            switch_port: self.u16()?,
            order: if self.flag()? {
                Some(self.order()?)
            } else {
                None
            },
        })
    }

    fn order(&mut self) -> Option<OrderedDuty> {
        let number = self.u64()?;
        let bouncing = match self.take()? {
            [0] => Bouncing::Off,
            [1] => Bouncing::Longer,
            [2] => Bouncing::All,
            _ => return None,
        };
        let count = usize::from(self.u16()?);
        if count > PARTS_MAX {
            return None;
        }
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            let workers = self.u16()?;
            let types = TypeBytes([self.u64()?, self.u64()?, self.u64()?, self.u64()?]);
            parts.push(OrderedPart { types, workers });
        }
        let count = usize::from(self.u16()?);
        let (ascending, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        if count > 256 {
            return None;
        }
        Some(OrderedDuty {
            number,
            bouncing,
            parts,
            ascending: ascending.to_vec(),
        })
    }
}
