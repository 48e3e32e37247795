//! The next event of each worker: who is first is known at once, and a worker's new time is
//! compared with those of its line, and the line's with the other lines'.

use crate::server::NEVER;

/// Low bits of an entry that say whose it is; the time is above them, so the smaller entry is the
/// earlier event, and on a tie that of the lower index.
const PLAYER_BITS: u32 = 10;
const PLAYER_MASK: u64 = (1 << PLAYER_BITS) - 1;

/// The latest time of an event, a hundred days of virtual time. Later is never.
const LAST_NS: u64 = f64::INFINITY.to_bits() >> PLAYER_BITS;

/// A cache line of entries. Up to some dozens of players, comparing a line is faster than climbing a tree, each of whose
/// levels waits for a store to the one below.
const BLOCK: usize = 8;

/// An entry as a number that is never computed with: bit patterns up to infinity's are in the order of the numbers that
/// they stand for (IEEE 754 § 5.10), and machines find the least of several numbers in fewer steps than that of several words.
type Entry = f64;

/// Everyone's next event, for a fixed number of players; on a tie the lower index is first.
pub(crate) struct Agenda {
    entries: Box<[Line]>,
    /// The first of each line, in lines again.
    firsts: Box<[Line]>,
    first: u64,
}

#[derive(Clone)]
#[repr(align(64))]
struct Line([Entry; BLOCK]);

impl Line {
    const NEVER: Self = Self([Entry::INFINITY; BLOCK]);

    /// The first of the line.
    #[inline]
    fn first(&self) -> Entry {
        self.first_but(&[0.0; BLOCK])
    }

    /// The first of the line once an entry has been replaced. The old one is hidden and the new one compared last, from a
    /// register: reading the line back would wait for the store, which is narrower than the loads.
    #[inline]
    fn replace(&mut self, place: usize, entry: Entry) -> Entry {
        let others = self.first_but(&HIDES[place]);
        self.0[place] = entry;
        earlier(others, entry)
    }

    #[inline]
    fn first_but(&self, hidden: &[Entry; BLOCK]) -> Entry {
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|at| later(self.0[at], hidden[at]));
        earlier(
            earlier(earlier(a, e), earlier(c, g)),
            earlier(earlier(b, f), earlier(d, h)),
        )
    }
}

/// Which entry is not looked at: it counts as never.
static HIDES: [[Entry; BLOCK]; BLOCK] = {
    let mut hides = [[0.0; BLOCK]; BLOCK];
    let mut place = 0;
    while place < BLOCK {
        hides[place][place] = Entry::INFINITY;
        place += 1;
    }
    hides
};

/// One instruction, where `f64::min` also has to see to what is not a number.
#[inline]
fn earlier(one: Entry, other: Entry) -> Entry {
    if one < other { one } else { other }
}

#[inline]
fn later(one: Entry, other: Entry) -> Entry {
    if one > other { one } else { other }
}

impl Agenda {
    pub(crate) fn new(players: usize) -> Self {
        assert!(
            players <= 1 << PLAYER_BITS,
            "{players} players are too many"
        );
        let blocks = players.div_ceil(BLOCK);
        Self {
            entries: vec![Line::NEVER; blocks].into(),
            firsts: vec![Line::NEVER; blocks.div_ceil(BLOCK)].into(),
            first: Entry::INFINITY.to_bits(),
        }
    }

    /// Time of the first event, [`NEVER`] without one.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        match self.first >> PLAYER_BITS {
            LAST_NS => NEVER,
            at_ns => at_ns,
        }
    }

    /// Who has it.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        (self.first & PLAYER_MASK) as usize
    }

    /// The player's event is now at this time.
    #[inline]
    pub(crate) fn set(&mut self, player: usize, at_ns: u64) {
        let entry = match at_ns {
            LAST_NS.. => Entry::INFINITY,
            _ => Entry::from_bits(at_ns << PLAYER_BITS | player as u64),
        };
        let block = player / BLOCK;
        let first_of_block = self.entries[block].replace(player % BLOCK, entry);
        let first_of_line = self.firsts[block / BLOCK].replace(block % BLOCK, first_of_block);
        let first = match self.firsts.len() {
            1 => first_of_line,
            _ => self
                .firsts
                .iter()
                .map(Line::first)
                .fold(Entry::INFINITY, earlier),
        };
        self.first = first.to_bits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn always_names_the_first(
            players in 1usize..40,
            moves in prop::collection::vec((0usize..40, prop_oneof![4 => 0u64..50, 1 => Just(NEVER), 1 => LAST_NS - 2..LAST_NS]), 1..200),
        ) {
            let mut agenda = Agenda::new(players);
            let mut times = vec![NEVER; players];
            for (player, at_ns) in moves {
                let player = player % players;
                agenda.set(player, at_ns);
                times[player] = at_ns;
                let first = (0..players).min_by_key(|&p| times[p]).unwrap();
                prop_assert_eq!(agenda.first_ns(), times[first]);
                if times[first] != NEVER {
                    prop_assert_eq!(agenda.first(), first);
                }
            }
        }
    }
}
