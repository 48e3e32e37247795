//! The hash by which a network card spreads flows over its receive queues.

use crate::Rng;

/// The first bits of the key that drivers set unless told otherwise (Microsoft's): as many as an IPv4 flow uses.
const KEY: u128 = 0x6D5A_56DA_255B_0EC2_4167_253D_43A3_8FB0;

/// The Toeplitz hash of an IPv4 flow, as receive-side scaling computes it.
///
/// `addresses` are those of source and destination, `ports` likewise, each pair in one word with the source first.
#[must_use]
pub fn toeplitz(addresses: u64, ports: u32) -> u32 {
    // 96 bits of input at the top of the word: bit i of them selects the 32 bits of the key that begin at bit i.
    let mut left = (u128::from(addresses) << 64) | (u128::from(ports) << 32);
    let mut hash = 0;
    while left != 0 {
        let bit = left.leading_zeros();
        hash ^= (KEY >> (96 - bit)) as u32;
        left &= !(1 << (127 - bit));
    }
    hash
}

/// The hash of a client's flow, by the flow's number: its address and port are drawn from `seed`, as those of clients are, which no one
/// chooses to spread well.
#[must_use]
pub fn flow_hash(flow: u64, seed: u64) -> u32 {
    const SERVER: u64 = 0x0A00_0001;
    const SERVER_PORT: u32 = 7000;
    const CLIENTS: u64 = 0x0A00_0000;
    let drawn = Rng::new(seed ^ flow.wrapping_mul(0xD134_2543_DE82_EF95)).next_u64();
    let client = CLIENTS | (drawn >> 40);
    let port = 0x8000 | (drawn as u32 & 0x7FFF);
    toeplitz((client << 32) | SERVER, (port << 16) | SERVER_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors by which drivers verify their hash (Microsoft, "Verifying the RSS Hash Calculation").
    #[test]
    fn the_hash_is_that_of_network_cards() {
        let ip = |a: u64, b: u64, c: u64, d: u64| (a << 24) | (b << 16) | (c << 8) | d;
        for (source, source_port, destination, port, hash) in [
            (
                ip(66, 9, 149, 187),
                2794,
                ip(161, 142, 100, 80),
                1766,
                0x51CC_C178,
            ),
            (
                ip(199, 92, 111, 2),
                14230,
                ip(65, 69, 140, 83),
                4739,
                0xC626_B0EA,
            ),
            (
                ip(24, 19, 198, 95),
                12898,
                ip(12, 22, 207, 184),
                38024,
                0x5C2B_394A,
            ),
        ] {
            let ports = (source_port << 16) | port;
            assert_eq!(toeplitz((source << 32) | destination, ports), hash);
        }
    }

    #[test]
    fn many_flows_spread_evenly_and_few_do_not() {
        let loads = |flows: u64, seed| {
            let mut loads = [0_u64; 14];
            for flow in 0..flows {
                loads[super::super::Hashed::position(flow_hash(flow, seed).into(), 14)] += 1;
            }
            loads
        };
        // 10 000 expected of each, the standard deviation is 96.
        assert!(
            loads(140_000, 1)
                .iter()
                .all(|&load| load.abs_diff(10_000) < 700)
        );
        assert!(
            (0..10)
                .filter(|&seed| loads(8, seed).iter().any(|&load| load >= 2))
                .count()
                >= 8
        );
        assert_ne!(loads(8, 1), loads(8, 2));
    }
}
