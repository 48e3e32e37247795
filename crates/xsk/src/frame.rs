//! Parsing of a request's Ethernet frame and writing of its response's: Ethernet with up to two VLAN tags, IPv4 or IPv6, UDP.

use headway_net::slot::LINK_BYTES;

use crate::checksum::OnesSum;
use crate::device::unmapped;
use crate::mac::MacAddress;

const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const IP4_BYTES: usize = 20;
const IP6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const TYPE_IP4: [u8; 2] = [0x08, 0x00];
const TYPE_IP6: [u8; 2] = [0x86, 0xdd];
const TYPES_VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
const UDP: u8 = 17;
/// The hop limit of responses.
const HOPS: u8 = 64;

/// The fields of a request's frame that its response needs besides IP addresses and ports: the sender's Ethernet address and the VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReturnLink {
    /// The sender's address, the tags' bytes, the number of tags.
    bytes: [u8; LINK_BYTES],
}

const TAGS_AT: usize = 6;
const COUNT_AT: usize = TAGS_AT + 2 * TAG_BYTES;
const _: () = assert!(COUNT_AT < LINK_BYTES);

impl ReturnLink {
    fn new(sender: &[u8], tags: &[u8]) -> Self {
        let mut bytes = [0; LINK_BYTES];
        bytes[..TAGS_AT].copy_from_slice(sender);
        bytes[TAGS_AT..TAGS_AT + tags.len()].copy_from_slice(tags);
        bytes[COUNT_AT] = (tags.len() / TAG_BYTES) as u8;
        Self { bytes }
    }

    /// Encodes the link for a slot.
    pub(crate) fn bytes(self) -> [u8; LINK_BYTES] {
        self.bytes
    }

    /// Decodes a slot's link. A number of tags above 2 becomes 2.
    pub(crate) fn of(bytes: [u8; LINK_BYTES]) -> Self {
        Self { bytes }
    }

    /// A link to this address without tags.
    pub(crate) fn to(mac: MacAddress) -> Self {
        Self::new(&mac.0, &[])
    }

    fn sender(&self) -> &[u8] {
        &self.bytes[..TAGS_AT]
    }

    fn tags(&self) -> &[u8] {
        let count = usize::from(self.bytes[COUNT_AT]).min(2);
        &self.bytes[TAGS_AT..TAGS_AT + count * TAG_BYTES]
    }
}

/// One end of a UDP datagram. IPv4 addresses are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UdpEnd {
    pub(crate) ip: [u8; 16],
    pub(crate) port: u16,
}

/// A received datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReceivedDatagram<'a> {
    pub(crate) from: UdpEnd,
    pub(crate) to: UdpEnd,
    pub(crate) link: ReturnLink,
    pub(crate) payload: &'a [u8],
}

/// Parses a frame; `None` unless it is a whole UDP datagram with right checksums, from a sender that can get an answer.
///
/// A virtual device of this machine may leave the UDP checksum to offload hardware that does not exist. The field then has the sum of the pseudo-header
/// alone. That passes as right, since such a packet has crossed no wire that could corrupt it.
#[inline]
pub(crate) fn parse(frame: &[u8]) -> Option<ReceivedDatagram<'_>> {
    let (ethernet, rest) = frame.split_at_checked(ETHERNET_BYTES)?;
    let sender = &ethernet[6..12];
    if sender[0] & 1 == 1 {
        return None;
    }
    let mut kind = [ethernet[12], ethernet[13]];
    let mut at = 0;
    while TYPES_VLAN.contains(&kind) && at < 2 * TAG_BYTES {
        let tag = rest.get(at..at + TAG_BYTES)?;
        kind = [tag[2], tag[3]];
        at += TAG_BYTES;
    }
    // A tag is its type and its number; the next one holds the type of the payload.
    let tags = &frame[ETHERNET_BYTES - 2..ETHERNET_BYTES - 2 + at];
    let link = ReturnLink::new(sender, tags);
    let packet = &rest[at..];
    match kind {
        TYPE_IP4 => ip4(packet, link),
        TYPE_IP6 => ip6(packet, link),
        _ => None,
    }
}

fn ip4(packet: &[u8], link: ReturnLink) -> Option<ReceivedDatagram<'_>> {
    let (header, rest) = packet.split_at_checked(IP4_BYTES)?;
    let is_whole = header[6] & 0x3f == 0 && header[7] == 0;
    if header[0] != 0x45 || header[9] != UDP || !is_whole {
        return None;
    }
    if OnesSum::default().with(header).bytes() != [0xff, 0xff] {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let segment = rest.get(..total.checked_sub(IP4_BYTES)?)?;
    // Excludes 0.0.0.0/8, loopback, multicast and broadcast.
    if matches!(header[12], 0 | 127 | 224..) {
        return None;
    }
    let mapped = |at: usize| {
        let mut ip = [0; 16];
        ip[10..12].copy_from_slice(&[0xff, 0xff]);
        ip[12..].copy_from_slice(&header[at..at + 4]);
        ip
    };
    let addresses = OnesSum::default().with(&header[12..20]);
    udp(segment, [mapped(12), mapped(16)], addresses, link)
}

fn ip6(packet: &[u8], link: ReturnLink) -> Option<ReceivedDatagram<'_>> {
    let (header, rest) = packet.split_at_checked(IP6_BYTES)?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return None;
    }
    let bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let segment = rest.get(..bytes)?;
    let (mut from, mut to) = ([0; 16], [0; 16]);
    from.copy_from_slice(&header[8..24]);
    to.copy_from_slice(&header[24..40]);
    let is_nobody = from[..15] == [0; 15] && from[15] <= 1;
    if is_nobody || from[0] == 0xff || unmapped(from).is_some() {
        return None;
    }
    let addresses = OnesSum::default().with(&header[8..40]);
    udp(segment, [from, to], addresses, link)
}

/// Parses the UDP header. The packet may be longer than its datagram, since short frames are padded.
fn udp(
    segment: &[u8],
    [from_ip, to_ip]: [[u8; 16]; 2],
    addresses: OnesSum,
    link: ReturnLink,
) -> Option<ReceivedDatagram<'_>> {
    let header = segment.get(..UDP_BYTES)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = number(4);
    let datagram = segment.get(..usize::from(length))?;
    let payload = datagram.get(UDP_BYTES..)?;
    let pseudo = addresses.with_number(u16::from(UDP)).with_number(length);
    let check = [header[6], header[7]];
    let is_right = match check {
        // Only IPv4 allows a datagram without a checksum.
        [0, 0] => unmapped(from_ip).is_some(),
        _ => check == pseudo.bytes() || pseudo.with(datagram).bytes() == [0xff, 0xff],
    };
    let (from_port, to_port) = (number(0), number(2));
    let is_answerable = from_port != 0 && !(from_ip == to_ip && from_port == to_port);
    (is_right && is_answerable).then_some(ReceivedDatagram {
        from: UdpEnd {
            ip: from_ip,
            port: from_port,
        },
        to: UdpEnd {
            ip: to_ip,
            port: to_port,
        },
        link,
        payload,
    })
}

/// A datagram to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseFrame<'a> {
    pub(crate) own_mac: [u8; 6],
    pub(crate) link: ReturnLink,
    pub(crate) from: UdpEnd,
    pub(crate) to: UdpEnd,
    /// In two parts, which follow one another.
    pub(crate) payload: [&'a [u8]; 2],
}

impl ResponseFrame<'_> {
    /// Writes the frame with its checksums; returns its length, or `None` when it does not fit.
    #[inline]
    pub(crate) fn write(&self, to: &mut [u8]) -> Option<usize> {
        let tags = self.link.tags();
        let ip_at = ETHERNET_BYTES + tags.len();
        let is_ip4 = unmapped(self.from.ip).is_some() && unmapped(self.to.ip).is_some();
        let (kind, ip_bytes) = if is_ip4 {
            (TYPE_IP4, IP4_BYTES)
        } else {
            (TYPE_IP6, IP6_BYTES)
        };
        let udp_at = ip_at + ip_bytes;
        let [first, second] = self.payload;
        let udp_bytes = UDP_BYTES + first.len() + second.len();
        let end = udp_at + udp_bytes;
        let frame = to.get_mut(..end)?;
        let udp_length = u16::try_from(udp_bytes).ok()?;
        frame[..6].copy_from_slice(self.link.sender());
        frame[6..12].copy_from_slice(&self.own_mac);
        frame[12..12 + tags.len()].copy_from_slice(tags);
        frame[ip_at - 2..ip_at].copy_from_slice(&kind);
        let header = &mut frame[ip_at..udp_at];
        let addresses = if is_ip4 {
            write_ip4(header, udp_length, self.from.ip, self.to.ip)?
        } else {
            write_ip6(header, udp_length, self.from.ip, self.to.ip)
        };
        let datagram = &mut frame[udp_at..];
        datagram[..2].copy_from_slice(&self.from.port.to_be_bytes());
        datagram[2..4].copy_from_slice(&self.to.port.to_be_bytes());
        datagram[4..6].copy_from_slice(&udp_length.to_be_bytes());
        datagram[6..8].fill(0);
        let (head, rest) = datagram[UDP_BYTES..].split_at_mut(first.len());
        head.copy_from_slice(first);
        rest.copy_from_slice(second);
        let sum = addresses
            .with_number(u16::from(UDP))
            .with_number(udp_length)
            .with(datagram);
        let check = match sum.checksum() {
            [0, 0] => [0xff, 0xff],
            check => check,
        };
        datagram[6..8].copy_from_slice(&check);
        Some(end)
    }
}

fn write_ip4(header: &mut [u8], udp_length: u16, from: [u8; 16], to: [u8; 16]) -> Option<OnesSum> {
    let total = udp_length.checked_add(IP4_BYTES as u16)?;
    header.fill(0);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    // Not to be fragmented: so the identification may be 0 (RFC 6864).
    header[6] = 0x40;
    header[8..10].copy_from_slice(&[HOPS, UDP]);
    header[12..16].copy_from_slice(&from[12..]);
    header[16..20].copy_from_slice(&to[12..]);
    let check = OnesSum::default().with(header).checksum();
    header[10..12].copy_from_slice(&check);
    Some(OnesSum::default().with(&header[12..20]))
}

fn write_ip6(header: &mut [u8], udp_length: u16, from: [u8; 16], to: [u8; 16]) -> OnesSum {
    header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    header[4..6].copy_from_slice(&udp_length.to_be_bytes());
    header[6..8].copy_from_slice(&[UDP, HOPS]);
    header[8..24].copy_from_slice(&from);
    header[24..40].copy_from_slice(&to);
    OnesSum::default().with(&header[8..40])
}

/// Answers a frame's datagram with its own payload, as a server on `AF_XDP` would, from the Ethernet address that the frame came to. Returns the answer's
/// length in `out`; `None` for a frame that a server does not hear, and for one that does not fit. For tests: a server parses and writes its frames by
/// itself.
#[must_use]
pub fn echo_frame(frame: &[u8], out: &mut [u8]) -> Option<usize> {
    let asked = parse(frame)?;
    let answer = ResponseFrame {
        own_mac: frame.get(..6)?.try_into().ok()?,
        link: ReturnLink::of(asked.link.bytes()),
        from: asked.to,
        to: asked.from,
        payload: [asked.payload, &[]],
    };
    answer.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(is_ip4: bool, last: u8) -> [u8; 16] {
        let mut ip = [0; 16];
        if is_ip4 {
            ip[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, last]);
        } else {
            ip[0] = 0xfd;
            ip[15] = last;
        }
        ip
    }

    /// The frame of a datagram from host 1 to host 2.
    fn frame(is_ip4: bool, tags: usize, payload: &[u8]) -> Vec<u8> {
        let tag_bytes = [0x88, 0xa8, 0x20, 7, 0x81, 0x00, 0x20, 9];
        let link = ReturnLink::new(&[2, 0, 0, 0, 0, 2], &tag_bytes[8 - 4 * tags..]);
        let answer = ResponseFrame {
            own_mac: [2, 0, 0, 0, 0, 1],
            link,
            from: UdpEnd {
                ip: ip(is_ip4, 1),
                port: 4000,
            },
            to: UdpEnd {
                ip: ip(is_ip4, 2),
                port: 7000,
            },
            payload: [&payload[..payload.len() / 3], &payload[payload.len() / 3..]],
        };
        let mut bytes = vec![0xee; 2048];
        let length = answer.write(&mut bytes).unwrap();
        bytes.truncate(length);
        bytes
    }

    proptest! {
        #[test]
        fn an_answer_is_read_as_it_was_written_and_goes_back(
            is_ip4 in any::<bool>(), tags in 0..3usize, payload in proptest::collection::vec(any::<u8>(), 0..1400),
            padding in 0..40usize,
        ) {
            let mut request = frame(is_ip4, tags, &payload);
            request.resize(request.len() + padding, 0xaa);
            let read = parse(&request).unwrap();
            prop_assert_eq!(read.payload, &payload[..]);
            prop_assert_eq!(read.from, UdpEnd { ip: ip(is_ip4, 1), port: 4000 });
            prop_assert_eq!(read.to, UdpEnd { ip: ip(is_ip4, 2), port: 7000 });
            let answer = ResponseFrame {
                own_mac: [2, 0, 0, 0, 0, 2],
                link: ReturnLink::of(read.link.bytes()),
                from: read.to,
                to: read.from,
                payload: [read.payload, &[]],
            };
            let mut bytes = vec![0; 2048];
            let length = answer.write(&mut bytes).unwrap();
            // The frames are equal except for the swapped addresses, whose sum is the same.
            prop_assert_eq!(length, request.len() - padding);
            prop_assert_eq!(&bytes[..6], &request[6..12]);
            prop_assert_eq!(&bytes[6..12], &request[..6]);
            prop_assert_eq!(&bytes[12..14 + 4 * tags], &request[12..14 + 4 * tags]);
            let back = parse(&bytes[..length]).unwrap();
            prop_assert_eq!((back.from, back.to, back.payload), (read.to, read.from, read.payload));
        }

        #[test]
        fn a_changed_bit_of_the_datagram_is_seen(
            is_ip4 in any::<bool>(), payload in proptest::collection::vec(any::<u8>(), 1..100), bit in any::<prop::sample::Index>(),
        ) {
            let mut bytes = frame(is_ip4, 0, &payload);
            let from = ETHERNET_BYTES + if is_ip4 { 0 } else { 8 };
            let bit = bit.index((bytes.len() - from) * 8);
            // The length decides which bytes are summed, and a checksum of 0 means none.
            let length_at = ETHERNET_BYTES + if is_ip4 { IP4_BYTES } else { IP6_BYTES } + 4;
            prop_assume!(!(length_at..length_at + 2).contains(&(from + bit / 8)));
            bytes[from + bit / 8] ^= 1 << (bit % 8);
            prop_assume!(bytes[length_at + 2..length_at + 4] != [0, 0]);
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn whatever_comes_is_read_without_panic_and_within_its_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(read) = parse(&bytes) {
                prop_assert!(read.payload.len() <= bytes.len());
            }
        }

        /// Half-random frames pass the first checks.
        #[test]
        fn a_frame_cut_or_overwritten_is_read_without_panic(
            is_ip4 in any::<bool>(), tags in 0..3usize, cut in 0..200usize, at in 0..80usize, byte in any::<u8>(),
        ) {
            let mut bytes = frame(is_ip4, tags, &[7; 90]);
            bytes.truncate(cut);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn checksums_may_be_missing_or_left_to_hardware() {
        let check_at =
            |is_ip4: bool| ETHERNET_BYTES + if is_ip4 { IP4_BYTES } else { IP6_BYTES } + 6;
        for is_ip4 in [true, false] {
            let mut bytes = frame(is_ip4, 0, b"payload");
            let at = check_at(is_ip4);
            bytes[at..at + 2].fill(0);
            assert_eq!(parse(&bytes).is_some(), is_ip4);
            let pseudo = OnesSum::default()
                .with(&ip(is_ip4, 1)[if is_ip4 { 12 } else { 0 }..])
                .with(&ip(is_ip4, 2)[if is_ip4 { 12 } else { 0 }..])
                .with_number(17)
                .with_number(15);
            bytes[at..at + 2].copy_from_slice(&pseudo.bytes());
            assert!(parse(&bytes).is_some());
        }
    }

    #[test]
    fn who_can_get_no_answer_is_not_heard() {
        let change = |at: usize, to: &[u8]| {
            let mut bytes = frame(true, 0, b"x");
            bytes[at..at + to.len()].copy_from_slice(to);
            // A frame without a checksum, with a right header.
            bytes[40..42].fill(0);
            bytes[24..26].fill(0);
            let check = OnesSum::default().with(&bytes[14..34]).checksum();
            bytes[24..26].copy_from_slice(&check);
            parse(&bytes).is_some()
        };
        assert!(change(26, &[10, 0, 0, 1]));
        for source in [
            [127, 0, 0, 1],
            [0, 0, 0, 0],
            [224, 0, 0, 1],
            [255, 255, 255, 255],
        ] {
            assert!(!change(26, &source), "{source:?}");
        }
        // From port 0, from a multicast Ethernet address, a fragment, with options, not UDP.
        for (at, to) in [
            (34, &[0, 0][..]),
            (6, &[3]),
            (20, &[0x20]),
            (14, &[0x46]),
            (23, &[6]),
        ] {
            assert!(!change(at, to), "{at}");
        }
        // A sender equal to the destination.
        let mut bytes = frame(true, 0, b"x");
        bytes[26..30].copy_from_slice(&[10, 0, 0, 2]);
        bytes[34..36].copy_from_slice(&7000u16.to_be_bytes());
        bytes[40..42].fill(0);
        bytes[24..26].fill(0);
        let check = OnesSum::default().with(&bytes[14..34]).checksum();
        bytes[24..26].copy_from_slice(&check);
        assert_eq!(parse(&bytes), None);
    }
}
