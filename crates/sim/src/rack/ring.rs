//! A queue in a ring whose length is a power of two.

/// A queue whose entries are numbered in the order in which they came, from 0 on. An entry's place is its number's low
/// bits: the rack looks at the heads of its queues at every event, and `VecDeque` would compare and wrap at each look.
pub(super) struct Ring<T> {
    /// None before the first push; a power of two from then on.
    slots: Vec<T>,
    /// Number of the first.
    head: u64,
    /// Number of the next to come.
    tail: u64,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            head: 0,
            tail: 0,
        }
    }
}

impl<T: Copy> Ring<T> {
    /// Slots made at the first push.
    const AT_FIRST: usize = 64;

    /// Number of the first, or of the next to come when there is none.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&T> {
        if self.head == self.tail {
            None
        } else {
            Some(&self.slots[self.place(self.head)])
        }
    }

    /// One that is in the queue.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut T {
        debug_assert!((self.head..self.tail).contains(&number));
        let place = self.place(number);
        &mut self.slots[place]
    }

    /// Appends an entry; its number.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> u64 {
        if self.len() == self.slots.len() {
            self.grow(entry);
        }
        let (number, place) = (self.tail, self.place(self.tail));
        self.slots[place] = entry;
        self.tail += 1;
        number
    }

    /// Takes the first, if there is one, away.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        self.head += u64::from(self.head < self.tail);
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Twice the slots: what was in place `number mod n` is then in both places that `number mod 2n` may be.
    #[cold]
    fn grow(&mut self, filler: T) {
        if self.slots.is_empty() {
            self.slots.resize(Self::AT_FIRST, filler);
        } else {
            self.slots.extend_from_within(..);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn keeps_order_and_numbers(pushes in prop::collection::vec((0usize..90, 0usize..90), 1..20)) {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            let mut next = 0;
            for (pushed, dropped) in pushes {
                for _ in 0..pushed {
                    prop_assert_eq!(ring.push(!next), next);
                    model.push_back(next);
                    next += 1;
                }
                for _ in 0..dropped.min(model.len()) {
                    prop_assert_eq!(ring.first().copied(), model.front().map(|number| !number));
                    ring.drop_first();
                    model.pop_front();
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.head(), model.front().copied().unwrap_or(next));
                for &number in &model {
                    prop_assert_eq!(*ring.get_mut(number), !number);
                }
            }
            while !model.is_empty() {
                model.pop_front();
                ring.drop_first();
            }
            prop_assert!(ring.first().is_none());
        }
    }
}
