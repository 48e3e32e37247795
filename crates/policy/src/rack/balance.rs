//! Which server of a group is next: weighted round robin (Pallas § 4.2, appendix C).

use super::ServerId;
use alloc::vec::Vec;

/// In which order the servers of a group take their turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turns {
    /// As evenly as the weights allow: a server's turns are spread over the round.
    #[default]
    Even,
    /// One server's turns after the other's: the counter falls into a server's range of weights (the paper's prototype).
    Ranges,
}

/// One round of turns, and whose is next. The table is what a switch matches its counter against.
#[derive(Clone, Debug, Default)]
pub struct Wheel {
    turns: Vec<u16>,
    next: u32,
    /// When each turn is due, the server in the low 16 bits: room to sort in.
    due: Vec<u64>,
}

impl Wheel {
    /// No turns yet, room for `capacity` of them.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            turns: Vec::with_capacity(capacity),
            next: 0,
            due: Vec::with_capacity(capacity),
        }
    }

    /// Server `s` gets `weight(s)` turns a round from now on; the counter goes on where it was, modulo the round.
    pub fn set(&mut self, servers: usize, weight: impl Fn(usize) -> usize, turns: Turns) {
        self.turns.clear();
        match turns {
            Turns::Ranges => (0..servers).for_each(|server| {
                let range = core::iter::repeat_n(server as u16, weight(server));
                self.turns.extend(range);
            }),
            Turns::Even => self.spread(servers, weight),
        }
        self.next = match self.turns.len() as u32 {
            0 => 0,
            round => self.next % round,
        };
    }

    /// The n-th of a server's w turns is due at (n + ½)/w of the round; turns are taken in the order in which they are due.
    fn spread(&mut self, servers: usize, weight: impl Fn(usize) -> usize) {
        self.due.clear();
        for server in 0..servers {
            let share = weight(server) as u64;
            let due =
                (0..share).map(|turn| ((((2 * turn + 1) << 32) / share) << 16) | server as u64);
            self.due.extend(due);
        }
        self.due.sort_unstable();
        self.turns.extend(self.due.iter().map(|&due| due as u16));
    }

    /// Turns in a round: the group's cores.
    #[must_use]
    pub fn round(&self) -> usize {
        self.turns.len()
    }

    /// The servers of one round, turn by turn.
    #[must_use]
    pub fn order(&self) -> &[u16] {
        &self.turns
    }

    /// Whose turn it is. Nobody's while there are no turns.
    #[inline]
    pub fn turn(&mut self) -> Option<ServerId> {
        let server = *self.turns.get(self.next as usize)?;
        self.next += 1;
        if self.next as usize == self.turns.len() {
            self.next = 0;
        }
        Some(ServerId(server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(weights: &[usize], turns: Turns) -> Vec<u16> {
        let mut wheel = Wheel::new(0);
        wheel.set(weights.len(), |server| weights[server], turns);
        (0..wheel.round())
            .map(|_| wheel.turn().unwrap().0)
            .collect()
    }

    #[test]
    fn turns_in_ranges_and_spread() {
        assert_eq!(round(&[3, 1, 2], Turns::Ranges), [0, 0, 0, 1, 2, 2]);
        assert_eq!(round(&[3, 0, 2], Turns::Even), [0, 2, 0, 2, 0]);
    }

    proptest! {
        /// Over whole rounds exactly in proportion; spread turns are never far from it in between.
        #[test]
        fn turns_are_proportional(weights in prop::collection::vec(0usize..13, 1..9)) {
            let total: usize = weights.iter().sum();
            for turns in [Turns::Even, Turns::Ranges] {
                let order = round(&weights, turns);
                for (server, &weight) in weights.iter().enumerate() {
                    let of = |turns: &[u16]| turns.iter().filter(|&&t| usize::from(t) == server).count();
                    prop_assert_eq!(of(&order), weight);
                    for length in 0..order.len() {
                        let fair = length as f64 * weight as f64 / total as f64;
                        let off = (of(&order[..length]) as f64 - fair).abs();
                        prop_assert!(turns == Turns::Ranges || off <= 2.0, "{:?}: {} off by {}", order, server, off);
                    }
                }
            }
        }
    }

    #[test]
    fn a_new_table_goes_on_with_the_counter() {
        let mut wheel = Wheel::new(0);
        wheel.set(2, |_| 2, Turns::Ranges);
        wheel.turn();
        wheel.set(2, |_| 2, Turns::Ranges);
        assert_eq!(wheel.turn(), Some(ServerId(0)));
        assert_eq!(wheel.turn(), Some(ServerId(1)));
        assert_eq!(Wheel::new(3).turn(), None);
    }
}
