//! Only the first response of a cloned request passes.

use super::Mark;
use alloc::vec;
use alloc::vec::Vec;

/// Remembers, by index modulo its size, which cloned requests were answered: one register array, one access a response
/// (`NetClone`, SIGCOMM '23; Pallas § 4.5).
///
/// A second response is recognised as long as no other cloned request whose index is equal modulo the size was answered
/// between the two. One that is dropped at a server leaves an entry behind, which the next to come by overwrites.
#[derive(Clone, Debug)]
pub struct Duplicates {
    /// The index answered last plus one; 0 where there is none.
    answered: Vec<u64>,
}

impl Duplicates {
    /// `slots` registers, a power of two.
    ///
    /// # Panics
    /// When `slots` is not a power of two.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots: not a power of two");
        Self {
            answered: vec![0; slots],
        }
    }

    /// Whether the response goes on to the client.
    #[inline]
    pub fn passes(&mut self, index: u32, mark: Mark) -> bool {
        if mark == Mark::Plain {
            return true;
        }
        let slot = index as usize & (self.answered.len() - 1);
        let entry = u64::from(index) + 1;
        let first = self.answered[slot] != entry;
        self.answered[slot] = if first { entry } else { 0 };
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Two responses to each of the requests in flight, in any order: one passes.
        #[test]
        fn a_cloned_request_is_answered_once(
            start in any::<u32>(),
            order in Just((0..128usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut duplicates = Duplicates::new(64);
            let mut passed = [0; 64];
            for response in order {
                let mark = if response % 2 == 0 { Mark::Original } else { Mark::Clone };
                let index = start.wrapping_add(response as u32 / 2);
                if duplicates.passes(index, mark) {
                    passed[response / 2] += 1;
                }
            }
            prop_assert_eq!(passed, [1; 64]);
        }
    }

    #[test]
    fn plain_responses_always_pass() {
        let mut duplicates = Duplicates::new(2);
        assert!((0..4).all(|_| duplicates.passes(7, Mark::Plain)));
    }

    #[test]
    fn an_entry_of_a_dropped_clone_harms_nobody() {
        let mut duplicates = Duplicates::new(2);
        assert!(duplicates.passes(0, Mark::Original));
        assert!(duplicates.passes(2, Mark::Original));
        assert!(!duplicates.passes(2, Mark::Clone));
    }
}
