//! The next event of each worker. The earliest is known at once. A worker's new time is compared
//! with the times of its block, and the block's earliest with those of the other blocks.

use crate::server::NEVER;

/// The low bits of an entry hold the player's index and the high bits the time. So the smaller entry is
/// the earlier event, and on a tie the event of the lower index.
const PLAYER_BITS: u32 = 10;
const PLAYER_MASK: u64 = (1 << PLAYER_BITS) - 1;

/// The latest time of an event: half a year of virtual time. Later times count as never.
pub(crate) const LAST_NS: u64 = NEVER >> PLAYER_BITS;

/// A cache line of entries. Up to some dozens of players, comparing a line is faster than climbing a tree: each level of
/// a tree waits for a store to the level below.
const BLOCK: usize = 8;

/// The next event of each of a fixed number of players (workers or servers); on a tie the lower index is first.
pub(crate) struct Agenda {
    first: u64,
    /// Up to sixteen players, as many as most servers have workers: stored inline, without an indirection.
    few: Few,
    /// More players: their entries, and the first of each block, again in blocks.
    entries: Box<[[u64; BLOCK]]>,
    firsts: Box<[[u64; BLOCK]]>,
}

/// Two blocks, and the first of each.
struct Few {
    entries: [[u64; BLOCK]; 2],
    firsts: [u64; 2],
}

impl Agenda {
    pub(crate) fn new(players: usize) -> Self {
        assert!(
            players <= 1 << PLAYER_BITS,
            "{players} players are too many"
        );
        let blocks = match players.div_ceil(BLOCK) {
            ..=2 => 0,
            blocks => blocks,
        };
        Self {
            first: u64::MAX,
            few: Few {
                entries: [[u64::MAX; BLOCK]; 2],
                firsts: [u64::MAX; 2],
            },
            entries: vec![[u64::MAX; BLOCK]; blocks].into(),
            firsts: vec![[u64::MAX; BLOCK]; blocks.div_ceil(BLOCK)].into(),
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

    /// The player with the earliest event.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        (self.first & PLAYER_MASK) as usize
    }

    /// Sets the time of the player's event.
    #[inline]
    pub(crate) fn set(&mut self, player: usize, at_ns: u64) {
        let entry = at_ns.min(LAST_NS) << PLAYER_BITS | player as u64;
        self.first = if self.entries.is_empty() {
            self.few.set(player, entry)
        } else {
            self.set_among_many(player, entry)
        };
    }

    fn set_among_many(&mut self, player: usize, entry: u64) -> u64 {
        let place = player / BLOCK;
        let block = &mut self.entries[place];
        block[player % BLOCK] = entry;
        self.firsts[place / BLOCK][place % BLOCK] = first_of(block);
        self.firsts.iter().map(first_of).fold(u64::MAX, u64::min)
    }
}

impl Few {
    #[inline]
    fn set(&mut self, player: usize, entry: u64) -> u64 {
        let place = player / BLOCK % 2;
        let block = &mut self.entries[place];
        block[player % BLOCK] = entry;
        let first = first_of(block);
        self.firsts[place] = first;
        first.min(self.firsts[1 - place])
    }
}

#[inline]
fn first_of(&[a, b, c, d, e, f, g, h]: &[u64; BLOCK]) -> u64 {
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn always_names_the_first(
            players in prop_oneof![1usize..40, 60usize..90],
            moves in prop::collection::vec((0usize..90, prop_oneof![0u64..50, Just(NEVER)]), 1..200),
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
