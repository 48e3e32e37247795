//! Parsing and writing of TCP segments (RFC 9293, 3.1), with the options of RFC 7323 and RFC 2018. Checksums are the IP layer's.

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = 20;
/// The most bytes of a header with options.
pub const MOST_HEADER_BYTES: usize = 60;
/// Bytes that timestamps add to each header, with their padding.
pub const TIMESTAMP_BYTES: usize = 12;

/// A sequence number as it is on the wire.
pub type SequenceNumber = u32;

/// The control bits of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is meant.
    pub const ACK: Self = Self(0x10);

    /// Whether all of these bits are set.
    #[must_use]
    #[inline]
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Both sets of bits.
    #[must_use]
    #[inline]
    pub const fn with(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }
}

/// The timestamps option (RFC 7323, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The latest value of the other side.
    pub echo: u32,
}

/// Up to four blocks of received data beyond the acknowledgement (RFC 2018): first byte, and the byte after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SequenceNumber, SequenceNumber); 4],
    count: usize,
}

impl SackBlocks {
    /// Adds a block; the fifth is left out.
    pub fn push(&mut self, first: SequenceNumber, end: SequenceNumber) {
        if let Some(block) = self.blocks.get_mut(self.count) {
            *block = (first, end);
            self.count += 1;
        }
    }

    /// The blocks.
    #[must_use]
    pub fn as_slice(&self) -> &[(SequenceNumber, SequenceNumber)] {
        &self.blocks[..self.count]
    }
}

/// A segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentHeader {
    /// The sender's port.
    pub from_port: u16,
    /// The receiver's port.
    pub to_port: u16,
    /// The number of the first byte, or of the SYN.
    pub sequence: SequenceNumber,
    /// The next expected byte, if [`TcpFlags::ACK`] is set.
    pub acknowledgement: SequenceNumber,
    /// The control bits.
    pub flags: TcpFlags,
    /// The window, unscaled.
    pub window: u16,
    /// The maximum segment size.
    pub mss: Option<u16>,
    /// The shift of the sender's windows; above 14 means 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// Whether the sender understands selective acknowledgements.
    pub sack_permitted: bool,
    /// The timestamps.
    pub timestamps: Option<Timestamps>,
    /// Data that arrived out of order.
    pub sack: SackBlocks,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl SegmentHeader {
    /// Parses a segment: its header and its payload. `None` for one whose lengths are impossible. Unknown options are skipped; options behind a malformed one
    /// are ignored.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let fixed: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let length = usize::from(fixed[12] >> 4) * 4;
        let options = bytes.get(HEADER_BYTES..length)?;
        let mut header = Self {
            from_port: be16(fixed, 0)?,
            to_port: be16(fixed, 2)?,
            sequence: be32(fixed, 4)?,
            acknowledgement: be32(fixed, 8)?,
            flags: TcpFlags(fixed[13] & 0x1F),
            window: be16(fixed, 14)?,
            ..Self::default()
        };
        header.parse_options(options);
        Some((header, &bytes[length..]))
    }

    fn parse_options(&mut self, mut options: &[u8]) {
        // The form that nearly all segments have.
        if let [1, 1, 8, 10, rest @ ..] = options
            && rest.len() == 8
        {
            self.timestamps = parse_timestamps(rest);
            return;
        }
        loop {
            match *options {
                [] | [0, ..] => return,
                [1, ref rest @ ..] => options = rest,
                [kind, length, ..] => {
                    let Some((option, rest)) = options.split_at_checked(usize::from(length)) else {
                        return;
                    };
                    let Some(value) = option.get(2..) else {
                        return;
                    };
                    self.parse_option(kind, value);
                    options = rest;
                }
                [_] => return,
            }
        }
    }

    fn parse_option(&mut self, kind: u8, value: &[u8]) {
        match (kind, value.len()) {
            (2, 2) => self.mss = be16(value, 0),
            (3, 1) => self.window_scale = Some(value[0].min(14)),
            (4, 0) => self.sack_permitted = true,
            (5, bytes) if bytes % 8 == 0 => {
                for block in value.chunks_exact(8) {
                    if let (Some(first), Some(end)) = (be32(block, 0), be32(block, 4)) {
                        self.sack.push(first, end);
                    }
                }
            }
            (8, 8) => self.timestamps = parse_timestamps(value),
            _ => {}
        }
    }

    /// Writes the header into `to`, its checksum 0; returns its length.
    ///
    /// # Panics
    /// `to` is shorter than [`MOST_HEADER_BYTES`].
    #[must_use]
    pub fn write(&self, to: &mut [u8]) -> usize {
        let length = HEADER_BYTES + self.write_options(&mut to[HEADER_BYTES..MOST_HEADER_BYTES]);
        to[0..2].copy_from_slice(&self.from_port.to_be_bytes());
        to[2..4].copy_from_slice(&self.to_port.to_be_bytes());
        to[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        to[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        to[12] = ((length / 4) << 4) as u8;
        to[13] = self.flags.0;
        to[14..16].copy_from_slice(&self.window.to_be_bytes());
        to[16..20].fill(0);
        length
    }

    /// Writes the options, padded to whole words; returns their length. SACK blocks that do not fit are left out.
    fn write_options(&self, to: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            to[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            at
        };
        let mut length = 0;
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            length = put(&[2, 4, high, low]);
        }
        if let Some(shift) = self.window_scale {
            length = put(&[1, 3, 3, shift]);
        }
        if self.sack_permitted {
            length = put(&[1, 1, 4, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            put(&[1, 1, 8, 10]);
            put(&value.to_be_bytes());
            length = put(&echo.to_be_bytes());
        }
        let room = (MOST_HEADER_BYTES - HEADER_BYTES - length).saturating_sub(4) / 8;
        let blocks = self.sack.as_slice();
        let blocks = &blocks[..blocks.len().min(room)];
        if !blocks.is_empty() {
            length = put(&[1, 1, 5, (2 + 8 * blocks.len()) as u8]);
            for (first, end) in blocks {
                put(&first.to_be_bytes());
                length = put(&end.to_be_bytes());
            }
        }
        length
    }
}

fn parse_timestamps(value: &[u8]) -> Option<Timestamps> {
    Some(Timestamps {
        value: be32(value, 0)?,
        echo: be32(value, 4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let mut header = SegmentHeader {
            from_port: 80,
            to_port: 49152,
            sequence: u32::MAX,
            acknowledgement: 7,
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: 65_535,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            sack: SackBlocks::default(),
        };
        header.sack.push(9, 12);
        let mut bytes = [0xAA; 64];
        let length = header.write(&mut bytes);
        assert_eq!(length % 4, 0);
        let (read, payload) = SegmentHeader::parse(&bytes[..length + 3]).expect("whole");
        assert_eq!((read, payload), (header, &[0xAA; 3][..]));
    }

    #[test]
    fn sack_blocks_beyond_the_header_are_left_out() {
        let mut header = SegmentHeader {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..SegmentHeader::default()
        };
        (0..5).for_each(|block| header.sack.push(block * 10, block * 10 + 5));
        let mut bytes = [0; 64];
        let length = header.write(&mut bytes);
        assert_eq!(length, MOST_HEADER_BYTES);
        let (read, _) = SegmentHeader::parse(&bytes[..length]).expect("whole");
        assert_eq!(read.sack.as_slice(), [(0, 5), (10, 15), (20, 25)]);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_and_read_the_same(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some((header, _)) = SegmentHeader::parse(&bytes) {
                let mut to = [0; MOST_HEADER_BYTES];
                let mut header = header;
                // A made-up header may have more options than a real one.
                if header.mss.is_some() || header.window_scale.is_some() || header.sack_permitted {
                    header.sack = SackBlocks::default();
                }
                if header.timestamps.is_some() && header.sack.as_slice().len() > 3 {
                    header.timestamps = None;
                }
                let length = header.write(&mut to);
                prop_assert_eq!(SegmentHeader::parse(&to[..length]).map(|read| read.0), Some(header));
            }
        }
    }
}
