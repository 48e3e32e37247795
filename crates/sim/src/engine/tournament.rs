//! The next event of each worker, as a tournament: who is first is known at once, and a worker's
//! new time plays only the matches on its way up.

use crate::server::NEVER;

/// Low bits of an entry that say whose it is; the time is above them.
const PLAYER_BITS: u32 = 10;
const PLAYER_MASK: u64 = (1 << PLAYER_BITS) - 1;

/// The latest time of an event: half a year of virtual time. Later is never.
const LAST_NS: u64 = NEVER >> PLAYER_BITS;

/// A winner tree over a fixed number of players; on a tie the lower index wins.
///
/// An entry is time and player in one number, so a match is the smaller of two.
pub(crate) struct Tournament {
    /// `tree[1]` is the final, `tree[size + p]` player p.
    tree: Box<[u64]>,
    size: usize,
}

impl Tournament {
    pub(crate) fn new(players: usize) -> Self {
        assert!(players <= 1 << PLAYER_BITS, "{players} players are too many");
        let size = players.next_power_of_two();
        let mut tree = vec![NEVER; 2 * size].into_boxed_slice();
        for player in 0..size {
            tree[size + player] = entry(player, NEVER);
        }
        for node in (1..size).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        Self { tree, size }
    }

    /// Time of the first event, [`NEVER`] without one.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        match self.tree[1] >> PLAYER_BITS {
            LAST_NS => NEVER,
            at_ns => at_ns,
        }
    }

    /// Who has it.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        (self.tree[1] & PLAYER_MASK) as usize
    }

    /// The player's event is now at this time.
    #[inline]
    pub(crate) fn set(&mut self, player: usize, at_ns: u64) {
        let mut node = self.size + player;
        let mut winner = entry(player, at_ns);
        self.tree[node] = winner;
        while node > 1 {
            winner = winner.min(self.tree[node ^ 1]);
            node /= 2;
            self.tree[node] = winner;
        }
    }
}

#[inline]
fn entry(player: usize, at_ns: u64) -> u64 {
    at_ns.min(LAST_NS) << PLAYER_BITS | player as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn always_names_the_first(
            players in 1usize..40,
            moves in prop::collection::vec((0usize..40, prop_oneof![0u64..50, Just(NEVER)]), 1..200),
        ) {
            let mut tournament = Tournament::new(players);
            let mut times = vec![NEVER; players];
            for (player, at_ns) in moves {
                let player = player % players;
                tournament.set(player, at_ns);
                times[player] = at_ns;
                let first = (0..players).min_by_key(|&p| times[p]).unwrap();
                prop_assert_eq!(tournament.first_ns(), times[first]);
                if times[first] != NEVER {
                    prop_assert_eq!(tournament.first(), first);
                }
            }
        }
    }
}
