//! Looks for four secret words among many (as Phoenix' string_match): each word is scrambled like
//! the secrets are, then compared with each of them.
mod suite;

use suite::{Digest, Kernel, Random};

const SECRETS: [&[u8]; 4] = [b"helloworld", b"howareyou", b"ferrari", b"whotheman"];
const LONGEST: usize = 24;

fn scramble(word: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(word.iter().map(|byte| byte + 5));
}

struct Words {
    /// Words, each ended by a line feed.
    text: Vec<u8>,
    secrets: [Vec<u8>; 4],
    planted: [u32; 4],
    found: [u32; 4],
    places: u64,
}

impl Kernel for Words {
    const PASSES: u32 = 9;
    const EXPECTED: [u64; 2] = [0xc10cd2bcce6ff8e6, 0x8ed6e6249663d5f0];

    fn setup(full: bool) -> Self {
        let mut random = Random(5);
        let limit = if full { 200_000 } else { 30_000 };
        let (mut text, mut planted) = (Vec::with_capacity(limit), [0; 4]);
        while text.len() + LONGEST < limit {
            if random.below(500) == 0 {
                let which = random.below(4) as usize;
                planted[which] += 1;
                text.extend(SECRETS[which]);
            } else {
                // A secret's beginning now and then, so that comparisons do not end at the first byte.
                let head = SECRETS[random.below(4) as usize];
                let copied = random.below(5) as usize;
                text.extend(&head[..copied]);
                for _ in 0..1 + random.below(12) {
                    text.push(b'a' + random.below(26) as u8);
                }
                text.push(b'q'); // no secret ends so
            }
            text.push(b'\n');
        }
        let secrets = SECRETS.map(|secret| {
            let mut scrambled = Vec::new();
            scramble(secret, &mut scrambled);
            scrambled
        });
        Self {
            text,
            secrets,
            planted,
            found: [0; 4],
            places: 0,
        }
    }

    fn run(&mut self) {
        (self.found, self.places) = ([0; 4], 0);
        let mut scrambled = Vec::with_capacity(LONGEST);
        let mut at = 0;
        for word in self.text.split(|&byte| byte == b'\n') {
            scramble(word, &mut scrambled);
            for (secret, found) in self.secrets.iter().zip(&mut self.found) {
                if scrambled == *secret {
                    *found += 1;
                    self.places = self.places.wrapping_mul(31).wrapping_add(at);
                }
            }
            at += word.len() as u64 + 1;
        }
    }

    fn digest(&self) -> u64 {
        let found = self.found.iter().flat_map(|count| count.to_le_bytes());
        Digest(self.places).bytes(found).0
    }

    fn valid(&self) -> bool {
        self.planted == self.found
    }
}

suite::export!(Words);
