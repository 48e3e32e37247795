//! A queue in a ring whose length is a power of two.

/// A queue whose entries are numbered in the order of arrival, from 0. The low bits of an entry's number are its slot.
/// The rack reads the heads of its queues at every event, where `VecDeque` would compare and wrap at each read.
pub(super) struct Ring<T> {
    /// Empty before the first push; afterwards the length is a power of two.
    slots: Vec<T>,
    /// Number of the first entry.
    head: u64,
    /// Number of the next entry to be pushed.
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
    /// Slots allocated at the first push.
    const AT_FIRST: usize = 64;

    /// Number of the first entry, or of the next to be pushed when the queue is empty.
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

    /// The entry of this number, which must be in the queue.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut T {
        debug_assert!((self.head..self.tail).contains(&number));
        let place = self.place(number);
        &mut self.slots[place]
    }

    /// Appends an entry. Returns its number.
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

    /// Removes the first entry, if there is one.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        self.head += u64::from(self.head < self.tail);
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Doubles the slots. The entry of slot `number mod n` is then in both slots that `number mod 2n` can be.
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
