//! The Toeplitz hash of a flow, as network cards compute it for receive-side scaling.

/// The key that Microsoft publishes with its test vectors, and that most drivers use by default.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The most bytes that are hashed: addresses and ports of IPv4.
const MOST_BYTES: usize = 12;

/// For each position of the input and each byte value there, its part of the hash.
static PARTS: [[u32; 256]; MOST_BYTES] = parts();

const fn parts() -> [[u32; 256]; MOST_BYTES] {
    let mut parts = [[0; 256]; MOST_BYTES];
    let mut place = 0;
    while place < MOST_BYTES {
        let mut byte = 0;
        while byte < 256 {
            let mut bit = 0;
            while bit < 8 {
                if byte & (0x80 >> bit) != 0 {
                    parts[place][byte] ^= window(place * 8 + bit);
                }
                bit += 1;
            }
            byte += 1;
        }
        place += 1;
    }
    parts
}

/// The 32 bits of the key from a bit on.
const fn window(bit: usize) -> u32 {
    let (byte, within) = (bit / 8, bit % 8);
    let mut bits: u64 = 0;
    let mut at = 0;
    while at < 5 {
        bits = bits << 8 | KEY[byte + at] as u64;
        at += 1;
    }
    (bits >> (8 - within)) as u32
}

/// The hash of up to 12 bytes: source and destination address, then ports, in a packet's order.
#[inline]
#[must_use]
pub fn hash(input: &[u8]) -> u32 {
    let pairs = PARTS.iter().zip(input);
    pairs.fold(0, |hash, (parts, &byte)| hash ^ parts[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source, destination, hash of addresses and ports, hash of addresses: from Microsoft's page on verifying RSS.
    #[test]
    fn the_published_vectors() {
        let input = |ips: [[u8; 4]; 2], ports: [u16; 2]| {
            let mut bytes = ips.concat();
            bytes.extend(ports.map(u16::to_be_bytes).concat());
            bytes
        };
        for (from, to, with_ports, without) in [
            (
                ([66, 9, 149, 187], 2794),
                ([161, 142, 100, 80], 1766),
                0x51cc_c178,
                0x323e_8fc2,
            ),
            (
                ([199, 92, 111, 2], 14230),
                ([65, 69, 140, 83], 4739),
                0xc626_b0ea,
                0xd718_262a,
            ),
            (
                ([24, 19, 198, 95], 12898),
                ([12, 22, 207, 184], 38024),
                0x5c2b_394a,
                0xd2d0_a5de,
            ),
            (
                ([38, 27, 205, 30], 48228),
                ([209, 142, 163, 6], 2217),
                0xafc7_327f,
                0x8298_9176,
            ),
            (
                ([153, 39, 163, 191], 44251),
                ([202, 188, 127, 2], 1303),
                0x10e8_28a2,
                0x5d18_09c5,
            ),
        ] {
            let bytes = input([from.0, to.0], [from.1, to.1]);
            assert_eq!(hash(&bytes), with_ports);
            assert_eq!(hash(&bytes[..8]), without);
        }
    }
}
