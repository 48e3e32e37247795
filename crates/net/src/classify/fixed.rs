//! Classifies by a number at a fixed offset: enough for most binary protocols with their own header.

use super::spec::{ClassifierSpec, ClassifierSpecError};
use super::{Classifier, NumberTable};

/// Order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Endian {
    /// Most significant byte first: network order.
    #[default]
    Big,
    /// Least significant byte first.
    Little,
}

/// Classifies by an unsigned number of 1, 2 or 4 bytes at a fixed offset, or by some bits
/// of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedField {
    offset: usize,
    width: Width,
    endian: Endian,
    mask: u32,
    table: NumberTable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Four,
}

impl FixedField {
    /// One byte at `offset` (from the start of the datagram).
    #[must_use]
    pub const fn one_byte(offset: usize, table: NumberTable) -> Self {
        Self {
            offset,
            width: Width::One,
            endian: Endian::Big,
            mask: u32::MAX,
            table,
        }
    }

    /// Two bytes from `offset` on.
    #[must_use]
    pub const fn two_bytes(offset: usize, endian: Endian, table: NumberTable) -> Self {
        Self {
            offset,
            width: Width::Two,
            endian,
            mask: u32::MAX,
            table,
        }
    }

    /// Four bytes from `offset` on.
    #[must_use]
    pub const fn four_bytes(offset: usize, endian: Endian, table: NumberTable) -> Self {
        Self {
            offset,
            width: Width::Four,
            endian,
            mask: u32::MAX,
            table,
        }
    }

    /// Uses only the bits in `mask`, shifted so that the lowest of them counts 1. With an empty mask
    /// every datagram long enough reads as 0.
    #[must_use]
    pub fn with_mask(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    pub(super) fn from_spec(spec: &mut ClassifierSpec<'_>) -> Result<Self, ClassifierSpecError> {
        let offset = spec.required("at", "at=4")?.number(0..=MAX_OFFSET)? as usize;
        let (width, widest) = match spec
            .required("bytes", "bytes=2")?
            .choice(&["1", "2", "4"])?
        {
            "1" => (Width::One, 0xFF),
            "2" => (Width::Two, 0xFFFF),
            _ => (Width::Four, 0xFFFF_FFFF),
        };
        let endian = match spec
            .take("endian")
            .map(|e| e.choice(&["big", "little"]))
            .transpose()?
        {
            Some("little") => Endian::Little,
            _ => Endian::Big,
        };
        let mask = match spec.take("mask") {
            Some(entry) => entry.number(1..=widest)? as u32,
            None => u32::MAX,
        };
        let table = spec.number_table(&["at", "bytes", "endian", "mask"], 0..=widest)?;
        Ok(Self {
            offset,
            width,
            endian,
            mask,
            table,
        })
    }

    #[inline]
    fn read(&self, datagram: &[u8]) -> Option<u32> {
        let from = datagram.get(self.offset..)?;
        Some(match (self.width, self.endian) {
            (Width::One, _) => u32::from(*from.first()?),
            (Width::Two, Endian::Big) => u32::from(u16::from_be_bytes(*from.first_chunk()?)),
            (Width::Two, Endian::Little) => u32::from(u16::from_le_bytes(*from.first_chunk()?)),
            (Width::Four, Endian::Big) => u32::from_be_bytes(*from.first_chunk()?),
            (Width::Four, Endian::Little) => u32::from_le_bytes(*from.first_chunk()?),
        })
    }
}

/// A datagram has no byte beyond this offset.
const MAX_OFFSET: u64 = u16::MAX as u64;

impl Classifier for FixedField {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let bits = self.read(datagram)? & self.mask;
        // An empty mask has 32 trailing zeros, one too many for a shift.
        let number = bits.checked_shr(self.mask.trailing_zeros()).unwrap_or(0);
        self.table.get(u64::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dig example.org A`: id, flags (recursion desired), one question.
    const DNS: &[u8] = b"\x1a\x2b\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
        \x07example\x03org\x00\x00\x01\x00\x01";

    #[test]
    fn widths_and_byte_orders() {
        let identity = NumberTable::identity;
        for (field, class) in [
            (FixedField::one_byte(1, identity()), Some(0x2b)),
            (
                FixedField::two_bytes(0, Endian::Big, identity()),
                Some(0x1a2b),
            ),
            (
                FixedField::two_bytes(0, Endian::Little, identity()),
                Some(0x2b1a),
            ),
            (
                FixedField::four_bytes(3, Endian::Big, identity()),
                Some(0x0100),
            ),
            (
                FixedField::four_bytes(5, Endian::Little, identity()),
                Some(1),
            ),
            (FixedField::four_bytes(0, Endian::Big, identity()), None),
        ] {
            assert_eq!(field.classify(DNS), class, "{field:?}");
        }
    }

    #[test]
    fn a_mask_selects_a_bit_field() {
        // DNS: opcode is bits 3 to 6 of byte 2; 5 is UPDATE.
        let opcode = FixedField::one_byte(2, NumberTable::from_iter([(0, 7), (5, 8)]))
            .with_mask(0b0111_1000);
        assert_eq!(opcode.classify(DNS), Some(7));
        assert_eq!(opcode.classify(b"\x00\x00\x28\x00"), Some(8));
        assert_eq!(opcode.classify(b"\x00\x00\x10\x00"), None);
    }

    #[test]
    fn an_empty_mask_reads_zero() {
        let blind = FixedField::one_byte(0, NumberTable::identity()).with_mask(0);
        assert_eq!(blind.classify(&[0xFF]), Some(0));
        assert_eq!(blind.classify(&[]), None);
    }

    #[test]
    fn a_field_beyond_the_end_has_no_class() {
        let field = FixedField::four_bytes(2, Endian::Big, NumberTable::identity());
        for len in 0..6 {
            assert_eq!(field.classify(&[0; 6][..len]), None);
        }
        assert_eq!(field.classify(&[0; 6]), Some(0));
        let far = FixedField::one_byte(usize::MAX, NumberTable::identity());
        assert_eq!(far.classify(&[0; 6]), None);
    }
}
