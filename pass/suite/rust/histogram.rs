//! Histograms of the three colours of an image (as Phoenix' histogram).
mod suite;

use suite::{Digest, Kernel, Random};

struct Histograms {
    /// Blue, green, red, …
    image: Vec<u8>,
    blue: [u32; 256],
    green: [u32; 256],
    red: [u32; 256],
}

impl Kernel for Histograms {
    const PASSES: u32 = 56;
    const EXPECTED: [u64; 2] = [0xc1950286dd21a65c, 0xcc8952c01a94e795];

    fn setup(full: bool) -> Self {
        let mut random = Random(2);
        let pixels = if full { 120_000 } else { 20_000 };
        // A sum of two: no colour is as frequent as the next.
        let mut byte = |i: u64| {
            let word = random.word();
            ((word & 127) + (word >> 32) % 126 + i % 3) as u8
        };
        Self {
            image: (0..3 * pixels).map(&mut byte).collect(),
            blue: [0; 256],
            green: [0; 256],
            red: [0; 256],
        }
    }

    fn run(&mut self) {
        (self.blue, self.green, self.red) = ([0; 256], [0; 256], [0; 256]);
        for &[blue, green, red] in self.image.as_chunks().0 {
            self.blue[usize::from(blue)] += 1;
            self.green[usize::from(green)] += 1;
            self.red[usize::from(red)] += 1;
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for ((&blue, &green), &red) in self.blue.iter().zip(&self.green).zip(&self.red) {
            digest.word(blue.into()).word(green.into()).word(red.into());
        }
        digest.0
    }

    fn valid(&self) -> bool {
        let counted: u32 = [self.blue, self.green, self.red].iter().flatten().sum();
        counted as usize == self.image.len()
            && self.red[..2] == [0, 0]
            && self.green[0] == 0
            && self.blue[255] == 0
    }
}

suite::export!(Histograms);
