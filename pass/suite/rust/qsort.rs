//! The standard library's unstable sort of records by a comparison function.
mod suite;

use std::cmp::Ordering;
use suite::{Digest, Kernel, Random};

#[derive(Clone, Copy)]
struct Record {
    key: u32,
    payload: u32,
}

type Comparison = fn(&Record, &Record) -> Ordering;

struct Sort {
    keys: Vec<u32>,
    records: Vec<Record>,
    order: Comparison,
}

impl Kernel for Sort {
    const PASSES: u32 = 5;
    const EXPECTED: [u64; 2] = [0x434b2f59aa921d88, 0x7fb077356ba7c50d];

    fn setup(full: bool) -> Self {
        let mut random = Random(30);
        let count = if full { 20000 } else { 5000 };
        let keys: Vec<u32> = (0..count).map(|_| random.word() as u32).collect();
        // Never by payload: but the compiler cannot know which order it is.
        let order: Comparison = if keys.is_empty() {
            |a, b| a.payload.cmp(&b.payload)
        } else {
            |a, b| a.key.cmp(&b.key)
        };
        Self {
            records: Vec::with_capacity(keys.len()),
            keys,
            order,
        }
    }

    fn run(&mut self) {
        self.records.clear();
        let numbered = self.keys.iter().zip(0..);
        self.records
            .extend(numbered.map(|(&key, payload)| Record { key, payload }));
        self.records.sort_unstable_by(self.order);
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        for record in &self.records {
            digest.word(u64::from(record.key) << 32 | u64::from(record.payload));
        }
        digest.0
    }

    /// Ascending, and each record is the one it was.
    fn valid(&self) -> bool {
        let payloads: u64 = self.records.iter().map(|r| u64::from(r.payload)).sum();
        let count = self.records.len() as u64;
        self.records.is_sorted_by_key(|record| record.key)
            && self
                .records
                .iter()
                .all(|r| self.keys[r.payload as usize] == r.key)
            && payloads == count * (count - 1) / 2
    }
}

suite::export!(Sort);
