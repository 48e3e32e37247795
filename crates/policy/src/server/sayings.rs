//! How often the requests of a class say that they are long.

use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// A class counts after so many requests: the first few may be its outliers.
const ENOUGH: u32 = 16;
/// Older requests weigh half after so many: the share follows a service that changes.
const WINDOW: u32 = 64;

/// A class's requests since one of them first said that it is long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct SaidShare {
    said: u32,
    of: u32,
}

impl SaidShare {
    fn add(&mut self, said: bool) {
        if self.of >= WINDOW {
            self.said /= 2;
            self.of /= 2;
        }
        self.said += u32::from(said);
        self.of += 1;
    }

    /// Whether nearly all say so. A class that did does so until fewer than half of its requests say it: one near the bound does not flip.
    fn is_usual(self, before: bool) -> bool {
        let (said, of) = (self.said, self.of);
        if before {
            2 * said >= of
        } else {
            of >= ENOUGH && 8 * said >= 7 * of
        }
    }
}

/// The classes whose requests usually say that they are long, as one worker hears. What a request says is said of itself; of its class it says something only
/// where nearly all say it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sayings {
    shares: Vec<SaidShare>,
    usual: BitSet,
}

impl Sayings {
    /// Of so many classes, UNKNOWN included, none of which has said anything yet.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self {
            shares: vec![SaidShare::default(); classes],
            usual: BitSet::EMPTY,
        }
    }

    /// The classes of which nearly all requests say that they are long.
    #[must_use]
    pub fn usual(&self) -> BitSet {
        self.usual
    }

    /// A request of the class said that it is long, or finished without. Whether the [usual](Self::usual) classes are others from now on.
    #[inline]
    pub fn record(&mut self, class: ClassId, said: bool) -> bool {
        let share = &mut self.shares[class.index()];
        if share.said == 0 && !said {
            return false;
        }
        share.add(said);
        let before = self.usual.contains(class.index());
        let is_usual = share.is_usual(before);
        self.usual.set(class.index(), is_usual);
        is_usual != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGS: ClassId = ClassId(1);

    #[test]
    fn a_class_is_usual_once_nearly_all_of_enough_requests_said_so() {
        let mut sayings = Sayings::new(3);
        let changes: Vec<u32> = (1..=100).filter(|_| sayings.record(LONGS, true)).collect();
        assert_eq!(changes, [ENOUGH]);
        assert!(sayings.usual().contains(1) && !sayings.usual().contains(0));
        // It forgets once half of the last requests said nothing.
        let quiet = (1..=WINDOW).find(|_| sayings.record(LONGS, false));
        assert!(
            quiet.is_some_and(|quiet| (16..=WINDOW).contains(&quiet)),
            "{quiet:?}"
        );
        assert!(sayings.usual().is_empty());
    }

    #[test]
    fn a_class_of_some_longs_is_not() {
        let mut sayings = Sayings::new(2);
        for request in 0..10_000 {
            assert!(!sayings.record(LONGS, request % 4 > 0), "three in four");
            assert!(!sayings.record(ClassId(0), false));
        }
    }
}
