//! Sets of small integers as machine words: "the first free worker in reserved ∪ stealable" is an
//! AND and a trailing-zeros.

const WORDS: usize = 4;

/// A set of integers below [`BitSet::CAPACITY`]: workers, or ranks of request classes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BitSet([u64; WORDS]);

impl BitSet {
    /// Elements are `0..CAPACITY`.
    pub const CAPACITY: usize = WORDS * 64;
    /// The set without elements.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// `{from, …, to − 1}`; empty when `from ≥ to`.
    ///
    /// # Panics
    /// When `to` exceeds [`Self::CAPACITY`].
    #[must_use]
    pub fn range(from: usize, to: usize) -> Self {
        let mut set = Self::EMPTY;
        for element in from..to {
            set.insert(element);
        }
        set
    }

    /// Adds `element`.
    ///
    /// # Panics
    /// When `element` is not below [`Self::CAPACITY`].
    #[inline]
    pub fn insert(&mut self, element: usize) {
        self.0[element / 64] |= 1 << (element % 64);
    }

    /// Takes `element` out; it need not be in the set.
    ///
    /// # Panics
    /// When `element` is not below [`Self::CAPACITY`].
    #[inline]
    pub fn remove(&mut self, element: usize) {
        self.0[element / 64] &= !(1 << (element % 64));
    }

    /// Whether `element` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, element: usize) -> bool {
        element < Self::CAPACITY && self.0[element / 64] & (1 << (element % 64)) != 0
    }

    /// Whether there is no element.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Word by word, since a load wider than the last store would wait for it.
        self.0.iter().all(|word| *word == 0)
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Puts `element` in or takes it out, without a branch.
    ///
    /// # Panics
    /// When `element` is not below [`Self::CAPACITY`].
    #[inline]
    pub fn set(&mut self, element: usize, present: bool) {
        let (word, bit) = (&mut self.0[element / 64], element % 64);
        *word = *word & !(1 << bit) | u64::from(present) << bit;
    }

    /// The words that it consists of; element `e` is bit `e % 64` of word `e / 64`.
    #[inline]
    #[must_use]
    pub fn words(&self) -> [u64; Self::CAPACITY / 64] {
        self.0
    }

    /// The smallest element.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        match self.0[0] {
            0 if self.0[1] | self.0[2] | self.0[3] == 0 => None,
            0 => self.first_beyond(),
            word => Some(word.trailing_zeros() as usize),
        }
    }

    /// The smallest element that `preferred` has too; failing that, that `fallback` has too.
    #[inline]
    #[must_use]
    pub fn first_in(&self, preferred: &Self, fallback: &Self) -> Option<usize> {
        if self.0[1] | self.0[2] | self.0[3] != 0 {
            return self
                .intersection(preferred)
                .first()
                .or_else(|| self.intersection(fallback).first());
        }
        // Which of the two it is changes from request to request: a selection, not a branch. And
        // word by word, since a load wider than the last store would wait for it.
        let (own, other) = (self.0[0] & preferred.0[0], self.0[0] & fallback.0[0]);
        let both = if own != 0 { own } else { other };
        (both != 0).then(|| both.trailing_zeros() as usize)
    }

    /// The element that so many others of the set are below.
    #[inline]
    #[must_use]
    pub fn nth(&self, mut others: usize) -> Option<usize> {
        for (index, &word) in self.0.iter().enumerate() {
            let count = word.count_ones() as usize;
            if others < count {
                let mut rest = word;
                for _ in 0..others {
                    rest &= rest - 1;
                }
                return Some(index * 64 + rest.trailing_zeros() as usize);
            }
            others -= count;
        }
        None
    }

    /// The smallest element above `element`.
    #[inline]
    #[must_use]
    pub fn next_after(&self, element: usize) -> Option<usize> {
        let (at, above) = (
            element / 64,
            u64::MAX.checked_shl(element as u32 % 64 + 1).unwrap_or(0),
        );
        match self.0[at] & above {
            0 => (at + 1..WORDS)
                .find(|&index| self.0[index] != 0)
                .map(|index| index * 64 + self.0[index].trailing_zeros() as usize),
            word => Some(at * 64 + word.trailing_zeros() as usize),
        }
    }

    #[cold]
    fn first_beyond(&self) -> Option<usize> {
        let (index, word) = self.0.iter().enumerate().find(|(_, word)| **word != 0)?;
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// The elements of both.
    #[inline]
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |mine, theirs| mine & theirs)
    }

    /// The elements of either.
    #[inline]
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, |mine, theirs| mine | theirs)
    }

    /// The elements of this set that `other` lacks.
    #[inline]
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |mine, theirs| mine & !theirs)
    }

    /// The elements, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut rest = *self;
        core::iter::from_fn(move || {
            let element = rest.first()?;
            rest.remove(element);
            Some(element)
        })
    }

    #[inline]
    fn zip(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self(core::array::from_fn(|word| {
            combine(self.0[word], other.0[word])
        }))
    }
}

impl FromIterator<usize> for BitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(elements: I) -> Self {
        let mut set = Self::EMPTY;
        for element in elements {
            set.insert(element);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::BitSet;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(a: BTreeSet<u8>, b: BTreeSet<u8>, c: BTreeSet<u8>) {
            let set = |s: &BTreeSet<u8>| s.iter().map(|&e| usize::from(e)).collect::<BitSet>();
            let list = |s: &BitSet| s.iter().map(|e| e as u8).collect::<Vec<_>>();
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(list(&x.union(&y)), a.union(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(list(&x.intersection(&y)), a.intersection(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(list(&x.difference(&y)), a.difference(&b).copied().collect::<Vec<_>>());
            let first = |s: &BTreeSet<u8>| a.intersection(s).next().map(|&e| usize::from(e));
            let c: BTreeSet<u8> = c;
            prop_assert_eq!(x.first_in(&y, &set(&c)), first(&b).or(first(&c)));
            prop_assert_eq!(x.first(), a.first().map(|&e| usize::from(e)));
            for element in 0..256usize {
                let next = a.iter().map(|&e| usize::from(e)).find(|&e| e > element);
                prop_assert_eq!(x.next_after(element), next);
            }
            for others in 0..=a.len() {
                let nth = a.iter().nth(others).map(|&e| usize::from(e));
                prop_assert_eq!(x.nth(others), nth);
            }
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
        }
    }
}
