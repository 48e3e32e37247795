//! A hash table with open addressing: inserts, looks up (half of it in vain), erases by shifting back.
mod suite;

use suite::{Digest, Kernel};

const FREE: u64 = 0;

#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    value: u64,
}

/// Its size is a power of two.
struct Table(Vec<Slot>);

impl Table {
    fn mask(&self) -> usize {
        self.0.len() - 1
    }

    fn home(&self, key: u64) -> usize {
        let key = (key ^ key >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (key ^ key >> 32) as usize & self.mask()
    }

    /// Where the key is, or would be.
    fn find(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.0[at].key != FREE && self.0[at].key != key {
            at = (at + 1) & self.mask();
        }
        at
    }

    fn insert(&mut self, key: u64, value: u64) {
        let at = self.find(key);
        self.0[at] = Slot { key, value };
    }

    fn get(&self, key: u64) -> Option<u64> {
        let slot = &self.0[self.find(key)];
        (slot.key != FREE).then_some(slot.value)
    }

    /// What follows moves into the hole, unless its home lies behind the hole.
    fn erase(&mut self, key: u64) {
        let mask = self.mask();
        let mut hole = self.find(key);
        if self.0[hole].key == FREE {
            return;
        }
        let mut at = (hole + 1) & mask;
        while self.0[at].key != FREE {
            let from_home = at.wrapping_sub(self.home(self.0[at].key)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.0[hole] = self.0[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.0[hole].key = FREE;
    }
}

struct Hash {
    table: Table,
    keys: u64,
    found: u64,
    sum: u64,
}

fn key_of(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

impl Kernel for Hash {
    const PASSES: u32 = 16;
    const EXPECTED: [u64; 2] = [0x5db9155160be56e1, 0x1b37164984c1b102];

    fn setup(full: bool) -> Self {
        let slots = if full { 1 << 14 } else { 1 << 10 };
        let free = Slot {
            key: FREE,
            value: 0,
        };
        Self {
            table: Table(vec![free; slots]),
            keys: slots as u64 * 7 / 10,
            found: 0,
            sum: 0,
        }
    }

    fn run(&mut self) {
        for slot in &mut self.table.0 {
            slot.key = FREE;
        }
        for i in 0..self.keys {
            self.table.insert(key_of(i), i);
        }
        for i in (0..self.keys).step_by(3) {
            self.table.erase(key_of(i));
        }
        (self.found, self.sum) = (0, 0);
        for value in (0..2 * self.keys).filter_map(|i| self.table.get(key_of(i))) {
            self.found += 1;
            self.sum += value;
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.word(self.found).word(self.sum);
        for slot in &self.table.0 {
            digest.word(slot.key);
        }
        digest.0
    }

    /// What was inserted and not erased is found, and nothing else.
    fn valid(&self) -> bool {
        let kept = || (0..self.keys).filter(|i| i % 3 != 0);
        self.found == kept().count() as u64 && self.sum == kept().sum::<u64>()
    }
}

suite::export!(Hash);
