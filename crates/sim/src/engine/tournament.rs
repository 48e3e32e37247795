//! The next event of each worker, as a tournament: who is first is known at once, and a worker's
//! new time plays only the matches on its way up.

use crate::server::NEVER;

#[derive(Clone, Copy)]
struct Entry {
    at_ns: u64,
    player: u32,
}

/// A winner tree over a fixed number of players; on a tie the lower index wins.
pub(crate) struct Tournament {
    /// `tree[1]` is the final, `tree[size + p]` player p.
    tree: Vec<Entry>,
    size: usize,
}

impl Tournament {
    pub(crate) fn new(players: usize) -> Self {
        let size = players.next_power_of_two();
        let mut tree = vec![
            Entry {
                at_ns: NEVER,
                player: 0
            };
            2 * size
        ];
        for player in 0..size {
            tree[size + player].player = player as u32;
        }
        let mut tournament = Self { tree, size };
        for node in (1..size).rev() {
            tournament.play(node);
        }
        tournament
    }

    /// Time of the first event, [`NEVER`] without one.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        self.tree[1].at_ns
    }

    /// Who has it.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        self.tree[1].player as usize
    }

    /// The player's event is now at this time.
    #[inline]
    pub(crate) fn set(&mut self, player: usize, at_ns: u64) {
        let mut node = self.size + player;
        self.tree[node].at_ns = at_ns;
        while node > 1 {
            node /= 2;
            self.play(node);
        }
    }

    #[inline]
    fn play(&mut self, node: usize) {
        let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
        self.tree[node] = if right.at_ns < left.at_ns {
            right
        } else {
            left
        };
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
