//! The wire header every Headway datagram starts with.
//!
//! The layout is Pallas' (ATC '25): a switch on the path must read type and index at a
//! fixed place, so there is neither a version nor a variable part. Ten bytes, big endian,
//! unaligned:
//!
//! | bytes | field | in a request | in a response |
//! |---|---|---|---|
//! | 0 | type | the request's class, [`UNKNOWN`] if the client cannot say | as in the request |
//! | 1 | flag | see below | see below |
//! | 2–5 | index | chosen by the client, unique among its requests in flight | as in the request |
//! | 6–9 | time | free for the client | execution time in ns, saturating at [`u32::MAX`] (4.29 s) |
//!
//! | bits of flag | field | values |
//! |---|---|---|
//! | 0–1 | [`CloneRole`] | 0 not cloned, 1 original, 2 clone (Pallas' burst handling); 3 reads as 0 |
//! | 2 | response | 0 request, 1 response |
//! | 3–5 | [`Status`] | 0 ok, 1 shed, 2 too large, 3 error, 4 draining, 5 bad request; 6 and 7 read as 3 |
//! | 6 | bounced | in a request from a server to a rack's switch: handed back, not begun; from the switch to a server: to be kept |
//! | 7 | queue | in a request from a rack's switch: the server is to say how many requests it has; in the response: it does, in two bytes behind the body |

use thiserror::Error;

/// Bytes of the wire header.
pub const HEADER_BYTES: usize = 10;

/// The type byte of requests without a known class.
pub const UNKNOWN: u8 = 255;

const CLONE_MASK: u8 = 0b0000_0011;
const RESPONSE_BIT: u8 = 0b0000_0100;
const STATUS_SHIFT: u32 = 3;
const STATUS_MASK: u8 = 0b0011_1000;
const BOUNCED_BIT: u8 = 0b0100_0000;
const QUEUE_BIT: u8 = 0b1000_0000;

/// Bytes behind a response's body with the number of requests at its server.
pub const QUEUE_BYTES: usize = 2;

/// A decoded wire header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The request's class, 0 to 254, or [`UNKNOWN`].
    pub class: u8,
    /// Clone role, direction and status.
    pub flag: Flag,
    /// The request's index, which matches a response to it: unique among a client's requests in flight.
    pub index: u32,
    /// In a response, the execution time in nanoseconds; in a request, any value of the client's.
    pub time_ns: u32,
}

/// The header does not fit into the given bytes.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The datagram received ends before its header does.
    #[error("datagram of {found} bytes ends inside the {HEADER_BYTES}-byte wire header")]
    Truncated {
        /// Bytes in the datagram, fewer than [`HEADER_BYTES`].
        found: usize,
    },
    /// The buffer to write to is shorter than a header.
    #[error("buffer of {found} bytes cannot hold the {HEADER_BYTES}-byte wire header")]
    NoRoom {
        /// Bytes in the buffer, fewer than [`HEADER_BYTES`].
        found: usize,
    },
}

headway_words::debug_is_display!(HeaderError);

impl Header {
    /// Splits a datagram into its header and its payload, which may be empty.
    ///
    /// # Errors
    /// [`HeaderError::Truncated`] if the datagram is shorter than [`HEADER_BYTES`]; every
    /// longer one is a header followed by a payload.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let found = datagram.len();
        let (bytes, payload) = datagram
            .split_first_chunk()
            .ok_or(HeaderError::Truncated { found })?;
        Ok((Self::decode(*bytes), payload))
    }

    /// Writes the header to the front of `buffer` and returns the room left for the payload.
    ///
    /// # Errors
    /// [`HeaderError::NoRoom`] if `buffer` is shorter than [`HEADER_BYTES`]; nothing is
    /// written then.
    #[inline]
    pub fn write(self, buffer: &mut [u8]) -> Result<&mut [u8], HeaderError> {
        let found = buffer.len();
        let (bytes, room) = buffer
            .split_first_chunk_mut()
            .ok_or(HeaderError::NoRoom { found })?;
        *bytes = self.encode();
        Ok(room)
    }

    /// The header of the response to this request: same class, index and clone role (by
    /// which the switch recognises duplicates), with the server's status and execution time.
    #[inline]
    #[must_use]
    pub fn response(self, status: Status, execution_ns: u64) -> Self {
        Self {
            flag: Flag::response(status).with_clone_role(self.flag.clone_role()),
            time_ns: u32::try_from(execution_ns).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// The header in wire order.
    #[inline]
    #[must_use]
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let [i0, i1, i2, i3] = self.index.to_be_bytes();
        let [t0, t1, t2, t3] = self.time_ns.to_be_bytes();
        [self.class, self.flag.0, i0, i1, i2, i3, t0, t1, t2, t3]
    }

    /// The header read from wire order.
    #[inline]
    #[must_use]
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Self {
        let [class, flag, i0, i1, i2, i3, t0, t1, t2, t3] = bytes;
        Self {
            class,
            flag: Flag(flag),
            index: u32::from_be_bytes([i0, i1, i2, i3]),
            time_ns: u32::from_be_bytes([t0, t1, t2, t3]),
        }
    }
}

/// The flag byte. Kept as received, reserved bits included, so that forwarding a datagram
/// does not alter it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flag(u8);

impl Flag {
    /// The flag of a request that is not cloned.
    pub const REQUEST: Self = Self(0);

    /// The flag of a response.
    #[inline]
    #[must_use]
    pub const fn response(status: Status) -> Self {
        Self(RESPONSE_BIT | (status as u8) << STATUS_SHIFT)
    }

    /// The flag with these bits, as received.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The flag's bits, as sent.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The same flag with another clone role.
    #[inline]
    #[must_use]
    pub const fn with_clone_role(self, role: CloneRole) -> Self {
        Self(self.0 & !CLONE_MASK | role as u8)
    }

    /// Whether the datagram is one of a cloned pair.
    #[inline]
    #[must_use]
    pub const fn clone_role(self) -> CloneRole {
        match self.0 & CLONE_MASK {
            1 => CloneRole::Original,
            2 => CloneRole::Clone,
            _ => CloneRole::None,
        }
    }

    /// The same flag with the bit of a bounced request set or not.
    #[inline]
    #[must_use]
    pub const fn with_bounced(self, bounced: bool) -> Self {
        Self(self.0 & !BOUNCED_BIT | (bounced as u8) << BOUNCED_BIT.trailing_zeros())
    }

    /// The bit of a bounced request. From a server to the rack's switch: the server returns the request without having begun it
    /// (Pallas, ATC '25, § 4.4). From the switch to a server: the server must not return it. Without meaning in a response, and
    /// between clients and servers.
    #[inline]
    #[must_use]
    pub const fn is_bounced(self) -> bool {
        !self.is_response() && self.0 & BOUNCED_BIT != 0
    }

    /// The same flag with the bit about the server's queue set or not.
    #[inline]
    #[must_use]
    pub const fn with_queue(self, queue: bool) -> Self {
        Self(self.0 & !QUEUE_BIT | (queue as u8) << QUEUE_BIT.trailing_zeros())
    }

    /// In a request: whether a rack's switch asks for the number of requests at the server. In a response: whether its last [`QUEUE_BYTES`] hold that
    /// number. Without meaning between clients and servers.
    #[inline]
    #[must_use]
    pub const fn has_queue(self) -> bool {
        self.0 & QUEUE_BIT != 0
    }

    /// Whether the datagram is a response.
    #[inline]
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.0 & RESPONSE_BIT != 0
    }

    /// Whether these are the bits of a response that this version sends: bit 6 is 0, and it has a status of this version. Narrower than
    /// [`is_response`](Self::is_response), for datagrams that need not begin with the wire header, such as a protocol's own requests: the second
    /// byte of `get key` has the response's bit as well.
    #[inline]
    #[must_use]
    pub const fn is_sent_response(self) -> bool {
        const LAST_STATUS: u8 = (Status::BadRequest as u8) << STATUS_SHIFT;
        self.is_response()
            && self.0 & !(CLONE_MASK | RESPONSE_BIT | STATUS_MASK | QUEUE_BIT) == 0
            && self.0 & STATUS_MASK <= LAST_STATUS
    }

    /// The status of a response; [`Status::Ok`] in requests.
    #[inline]
    #[must_use]
    pub const fn status(self) -> Status {
        match (self.0 & STATUS_MASK) >> STATUS_SHIFT {
            0 => Status::Ok,
            1 => Status::Shed,
            2 => Status::TooLarge,
            4 => Status::Draining,
            5 => Status::BadRequest,
            // An unknown status of a later version counts as a failure, never as success.
            _ => Status::Error,
        }
    }
}

/// A request's part in Pallas' burst handling: in a burst the switch sends the excess twice
/// and passes only the first response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum CloneRole {
    /// Not cloned.
    #[default]
    None = 0,
    /// The datagram of a cloned pair that went to its own group.
    Original = 1,
    /// The copy sent to the least loaded group: a server drops it unless it can start it at
    /// once.
    Clone = 2,
}

/// The status of a request's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Status {
    /// Served; the payload is the answer.
    #[default]
    Ok = 0,
    /// Dropped by flow control: the queue of its class was full.
    Shed = 1,
    /// The answer does not fit into a datagram.
    TooLarge = 2,
    /// The handler failed or panicked.
    Error = 3,
    /// The server is shutting down and takes no new requests.
    Draining = 4,
    /// The payload is not a request of the service.
    BadRequest = 5,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [CloneRole; 3] = [CloneRole::None, CloneRole::Original, CloneRole::Clone];
    const STATUSES: [Status; 6] = [
        Status::Ok,
        Status::Shed,
        Status::TooLarge,
        Status::Error,
        Status::Draining,
        Status::BadRequest,
    ];

    #[test]
    fn wire_order_is_type_flag_index_time_big_endian() {
        let flag = Flag::response(Status::TooLarge).with_clone_role(CloneRole::Clone);
        let header = Header {
            class: 7,
            flag,
            index: 0x0102_0304,
            time_ns: 0x0506_0708,
        };
        assert_eq!(header.encode(), [7, 0b0001_0110, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn every_flag_reads_back_as_written() {
        for role in ROLES {
            for status in STATUSES {
                let flag = Flag::response(status).with_clone_role(role);
                assert!(flag.is_response());
                assert_eq!((flag.clone_role(), flag.status()), (role, status));
                assert_eq!(
                    flag.bits() & 0b1100_0000,
                    0,
                    "the switch's bits are sent as 0"
                );
            }
        }
    }

    #[test]
    fn bounced_is_a_bit_of_requests_alone() {
        for role in ROLES {
            let flag = Flag::REQUEST.with_clone_role(role).with_bounced(true);
            assert!(flag.is_bounced() && !flag.is_sent_response());
            assert_eq!(
                (flag.bits(), flag.clone_role()),
                (0b0100_0000 | role as u8, role)
            );
            assert_eq!(
                flag.with_bounced(false),
                Flag::REQUEST.with_clone_role(role)
            );
        }
        assert!(!Flag::response(Status::Ok).with_bounced(true).is_bounced());
    }

    #[test]
    fn the_bit_of_the_queue_changes_no_other() {
        for bits in 0..=u8::MAX {
            let flag = Flag::from_bits(bits);
            assert!(flag.with_queue(true).has_queue());
            assert!(!flag.with_queue(false).has_queue());
            assert_eq!(flag.with_queue(true).bits() & 0x7f, bits & 0x7f);
            assert_eq!(flag.with_queue(flag.has_queue()), flag);
        }
    }

    #[test]
    fn what_is_sent_as_a_response_is_known_as_one_and_little_else() {
        for role in ROLES {
            for status in STATUSES {
                let flag = Flag::response(status).with_clone_role(role);
                assert!(flag.is_sent_response(), "{flag:?}");
                assert!(flag.with_queue(true).is_sent_response(), "{flag:?}");
            }
            assert!(!Flag::REQUEST.with_clone_role(role).is_sent_response());
        }
        let known = (0..=u8::MAX).filter(|bits| Flag::from_bits(*bits).is_sent_response());
        assert_eq!(known.count(), 2 * 4 * STATUSES.len());
        for request in ["get key\r\n", "*4\r\n$3\r\nSET\r\n", "PING\r\n"] {
            let second = request.as_bytes()[1];
            assert!(!Flag::from_bits(second).is_sent_response(), "{request}");
        }
    }

    #[test]
    fn the_switchs_bits_change_nothing_else() {
        for bits in 0..64 {
            let (plain, noisy) = (Flag::from_bits(bits), Flag::from_bits(bits | 0b1100_0000));
            assert_eq!(plain.clone_role(), noisy.clone_role());
            assert_eq!(plain.status(), noisy.status());
            assert_eq!(plain.is_response(), noisy.is_response());
        }
    }

    #[test]
    fn values_of_later_versions_read_as_the_safe_one() {
        assert_eq!(Flag::from_bits(3).clone_role(), CloneRole::None);
        for status in [6, 7] {
            assert_eq!(
                Flag::from_bits(status << STATUS_SHIFT).status(),
                Status::Error
            );
        }
    }

    #[test]
    fn response_keeps_identity_and_saturates_time() {
        let flag = Flag::REQUEST.with_clone_role(CloneRole::Original);
        let request = Header {
            class: 3,
            flag,
            index: 9,
            time_ns: 123,
        };
        let response = request.response(Status::Ok, 5_000_000_000);
        assert_eq!((response.class, response.index), (3, 9));
        assert_eq!(response.flag.clone_role(), CloneRole::Original);
        assert!(response.flag.is_response());
        assert_eq!(response.time_ns, u32::MAX);
        assert_eq!(request.response(Status::Ok, 1_500).time_ns, 1_500);
    }

    #[test]
    fn short_datagrams_and_buffers_are_refused() {
        for found in 0..HEADER_BYTES {
            let mut buffer = [0xAA; HEADER_BYTES];
            let request = Header {
                class: 0,
                flag: Flag::REQUEST,
                index: 0,
                time_ns: 0,
            };
            assert_eq!(
                Header::parse(&buffer[..found]),
                Err(HeaderError::Truncated { found })
            );
            assert_eq!(
                request.write(&mut buffer[..found]),
                Err(HeaderError::NoRoom { found })
            );
            assert_eq!(
                buffer, [0xAA; HEADER_BYTES],
                "a refused write leaves the buffer alone"
            );
        }
    }
}
