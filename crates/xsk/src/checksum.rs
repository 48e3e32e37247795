//! The Internet checksum (RFC 1071).

/// A one's complement sum in progress. Parts of an even length may be added in any order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OnesSum(u64);

impl OnesSum {
    /// Adds these bytes; an odd last byte is padded with a zero.
    #[inline]
    #[must_use]
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        // The sum is the same in either byte order once the result is stored in that order, so words are read in native order.
        let mut sum = u128::from(self.0);
        let mut eights = bytes.chunks_exact(8);
        for eight in &mut eights {
            let mut word = [0; 8];
            word.copy_from_slice(eight);
            sum += u128::from(u64::from_ne_bytes(word));
        }
        let mut last = [0; 8];
        let rest = eights.remainder();
        last[..rest.len()].copy_from_slice(rest);
        sum += u128::from(u64::from_ne_bytes(last));
        // 2^64 is 1 modulo 2^16 − 1.
        let folded = (sum & u128::from(u64::MAX)) + (sum >> 64);
        Self((folded & u128::from(u64::MAX)) as u64 + (folded >> 64) as u64)
    }

    /// Adds a 16-bit number.
    #[inline]
    #[must_use]
    pub(crate) fn with_number(self, number: u16) -> Self {
        self.with(&number.to_be_bytes())
    }

    /// The sum as two bytes of a packet.
    #[inline]
    #[must_use]
    pub(crate) fn bytes(self) -> [u8; 2] {
        let mut sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        (sum as u16).to_ne_bytes()
    }

    /// The checksum: the complement of the sum.
    #[inline]
    #[must_use]
    pub(crate) fn checksum(self) -> [u8; 2] {
        let [a, b] = self.bytes();
        [!a, !b]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The checksum by its definition, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        words.fold(0, |sum, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        }) as u16
    }

    #[test]
    fn the_example_of_the_rfc() {
        let sum = OnesSum::default().with(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.bytes(), [0xdd, 0xf2]);
        assert_eq!(sum.checksum(), [0x22, 0x0d]);
    }

    proptest! {
        #[test]
        fn it_is_the_plain_sum_however_it_is_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0..150usize, number in any::<u16>(),
        ) {
            let cut = (2 * cut).min(bytes.len() & !1);
            let sum = OnesSum::default().with(&bytes[..cut]).with(&bytes[cut..]).with_number(number);
            let whole = [&number.to_be_bytes()[..], &bytes].concat();
            prop_assert_eq!(u16::from_be_bytes(sum.bytes()), plain(&whole));
        }

        #[test]
        fn all_ones_do_not_overflow(len in 0..4096usize) {
            let bytes = vec![0xff; len];
            let sum = (0..3).fold(OnesSum::default(), |sum, _| sum.with(&bytes[..len & !1]));
            let thrice = vec![0xff; 3 * (len & !1)];
            prop_assert_eq!(u16::from_be_bytes(sum.bytes()), plain(&thrice));
        }
    }
}
