//! Radix sort of 32-bit keys, 2048 buckets a pass (as Splash-2's radix).
mod suite;

use suite::{Digest, Kernel, Random};

const BITS: u32 = 11;
const BUCKETS: usize = 1 << BITS;

struct Radix {
    keys: Vec<u32>,
    one: Vec<u32>,
    other: Vec<u32>,
}

fn pass(from: &[u32], to: &mut [u32], shift: u32) {
    let bucket = |key: u32| (key >> shift) as usize % BUCKETS;
    let mut offsets = [0_u32; BUCKETS];
    for &key in from {
        offsets[bucket(key)] += 1;
    }
    let mut sum = 0;
    for offset in &mut offsets {
        sum += std::mem::replace(offset, sum);
    }
    for &key in from {
        let offset = &mut offsets[bucket(key)];
        to[*offset as usize] = key;
        *offset += 1;
    }
}

impl Kernel for Radix {
    const PASSES: u32 = 20;
    const EXPECTED: [u64; 2] = [0xc1fb912ca2a6aec7, 0x0a4144cb71efe573];

    fn setup(full: bool) -> Self {
        let mut random = Random(12);
        let count = if full { 40_000 } else { 10_000 };
        Self {
            keys: (0..count).map(|_| random.word() as u32).collect(),
            one: vec![0; count],
            other: vec![0; count],
        }
    }

    fn run(&mut self) {
        pass(&self.keys, &mut self.one, 0);
        pass(&self.one, &mut self.other, BITS);
        pass(&self.other, &mut self.one, 2 * BITS);
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for &key in &self.one {
            digest.word(u64::from(key));
        }
        digest.0
    }

    /// Ascending, and the same keys.
    fn valid(&self) -> bool {
        let mut expected = self.keys.clone();
        expected.sort_unstable();
        self.one == expected
    }
}

suite::export!(Radix);
