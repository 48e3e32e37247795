//! The next event of each worker: who is first is known at once, and a worker's new time is
//! compared with those of its block, and the block's with the other blocks'.

use crate::server::NEVER;

/// Low bits of an entry that say whose it is; the time is above them, so the smaller entry is the
/// earlier event, and on a tie that of the lower index.
const PLAYER_BITS: u32 = 10;
const PLAYER_MASK: u64 = (1 << PLAYER_BITS) - 1;

/// The latest time of an event: half a year of virtual time. Later is never.
const LAST_NS: u64 = NEVER >> PLAYER_BITS;

/// A cache line of entries. Up to some dozens of players, comparing a line is faster than climbing a tree, each of whose
/// levels waits for a store to the one below.
const BLOCK: usize = 8;

/// Everyone's next event, for a fixed number of players; on a tie the lower index is first.
pub(crate) struct Agenda {
    entries: Box<[[u64; BLOCK]]>,
    /// The first of each block, in blocks again.
    firsts: Box<[[u64; BLOCK]]>,
    first: u64,
}

impl Agenda {
    pub(crate) fn new(players: usize) -> Self {
        assert!(
            players <= 1 << PLAYER_BITS,
            "{players} players are too many"
        );
        let blocks = players.div_ceil(BLOCK);
        Self {
            entries: vec![[u64::MAX; BLOCK]; blocks].into(),
            firsts: vec![[u64::MAX; BLOCK]; blocks.div_ceil(BLOCK)].into(),
            first: u64::MAX,
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
        let block = &mut self.entries[player / BLOCK];
        block[player % BLOCK] = at_ns.min(LAST_NS) << PLAYER_BITS | player as u64;
        let first_of_block = first_of(block);
        let place = player / BLOCK;
        self.first = match &mut *self.firsts {
            // Up to sixteen players, as most servers have workers: there is one other block.
            [firsts] if self.entries.len() <= 2 => {
                firsts[place % 2] = first_of_block;
                first_of_block.min(firsts[1 - place % 2])
            }
            [firsts] => {
                firsts[place % BLOCK] = first_of_block;
                first_of(firsts)
            }
            many => {
                many[place / BLOCK][place % BLOCK] = first_of_block;
                many.iter().map(first_of).fold(u64::MAX, u64::min)
            }
        };
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
