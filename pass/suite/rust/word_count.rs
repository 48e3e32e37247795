//! The most frequent words of a text (as Phoenix' word_count): the standard library's hash map, then its sort.
mod suite;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use suite::{Digest, Kernel, Random};

/// Without a seed: every repetition executes the same instructions.
type Counts<'a> = HashMap<&'a [u8], u32, BuildHasherDefault<DefaultHasher>>;

struct WordCount {
    text: Vec<u8>,
    words: usize,
    ranking: Vec<(Box<[u8]>, u32)>,
}

impl Kernel for WordCount {
    const PASSES: u32 = 4;
    const EXPECTED: [u64; 2] = [0x02651e6569658393, 0x9cf5e867aad1d527];

    fn setup(full: bool) -> Self {
        let mut random = Random(6);
        let (words, vocabulary) = if full {
            (30_000, 4000.0)
        } else {
            (4000, 500.0)
        };
        let mut text = Vec::new();
        for written in 0..words {
            let u = random.uniform(); // the cube makes some words much more frequent
            let mut word = Random((u * u * u * vocabulary) as u64 + 1000);
            for i in 0..2 + word.word() % 8 {
                let first = if i == 0 && written % 7 == 0 {
                    b'A'
                } else {
                    b'a'
                };
                text.push(first + (word.word() % 26) as u8);
            }
            text.push(if written % 11 == 0 { b',' } else { b' ' });
        }
        Self {
            text,
            words,
            ranking: Vec::new(),
        }
    }

    fn run(&mut self) {
        self.text.make_ascii_uppercase();
        let mut counts = Counts::default();
        for word in self.text.split(|byte| !byte.is_ascii_uppercase()) {
            if !word.is_empty() {
                *counts.entry(word).or_default() += 1;
            }
        }
        let counted = counts.into_iter();
        self.ranking = counted.map(|(word, count)| (word.into(), count)).collect();
        self.ranking
            .sort_unstable_by(|(a, m), (b, n)| (Reverse(m), a).cmp(&(Reverse(n), b)));
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for (word, count) in &self.ranking {
            digest.bytes(word.iter().copied()).word(u64::from(*count));
        }
        digest.0
    }

    fn valid(&self) -> bool {
        let total: u32 = self.ranking.iter().map(|(_, count)| count).sum();
        total as usize == self.words
            && self
                .ranking
                .is_sorted_by_key(|(word, count)| (Reverse(*count), word.clone()))
    }
}

suite::export!(WordCount);
