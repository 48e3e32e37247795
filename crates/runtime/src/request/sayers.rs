//! Which classes have requests that say that they are long (SYNERGY, section 5.1).
//!
//! A request that has said so may be interrupted from then on, and needs a thread's state of its own, which it must have from its beginning. So every class is taken
//! to say so, until many of its requests in a row have not. Then its requests are run without, until one says so after all: that one is not interrupted.

use std::sync::atomic::{AtomicU32, Ordering};

/// So many requests of a class that ended without a word, and none that said anything, make it a class that says nothing.
const ENOUGH: u32 = 1_000;

/// The count of a class of which some request said that it is long: it is never again taken for one that says nothing.
const SAID: u32 = u32::MAX;

/// By class, how many requests have ended without a word.
pub(crate) struct Sayers(Box<[AtomicU32]>);

impl Sayers {
    /// Of so many classes, UNKNOWN included. Where nobody `heeds` what they say, none says anything.
    pub(crate) fn new(classes: usize, heeds: bool) -> Self {
        let silent = if heeds { 0 } else { ENOUGH };
        Self((0..classes).map(|_| AtomicU32::new(silent)).collect())
    }

    /// Whether a request of this class may say that it is long.
    #[inline]
    pub(super) fn contains(&self, class: u16) -> bool {
        let silent = self.of(class).load(Ordering::Relaxed);
        silent < ENOUGH || silent == SAID
    }

    /// A request of this class said so.
    #[inline]
    pub(super) fn said(&self, class: u16) {
        let silent = self.of(class);
        if silent.load(Ordering::Relaxed) != SAID {
            silent.store(SAID, Ordering::Relaxed);
        }
    }

    /// A request of this class, which may say so, ended without.
    #[inline]
    pub(super) fn said_nothing(&self, class: u16) {
        let silent = self.of(class);
        let before = silent.load(Ordering::Relaxed);
        if before < ENOUGH {
            // Workers may overwrite each other's counts, but not what one has said.
            let _ =
                silent.compare_exchange(before, before + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn of(&self, class: u16) -> &AtomicU32 {
        &self.0[usize::from(class).min(self.0.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_nothing_after_many_that_did_not_until_one_does() {
        let sayers = Sayers::new(2, true);
        for _ in 0..ENOUGH {
            assert!(sayers.contains(0));
            sayers.said_nothing(0);
        }
        assert!(!sayers.contains(0));
        assert!(sayers.contains(1), "each class for itself");
        sayers.said(0);
        for _ in 0..2 * ENOUGH {
            sayers.said_nothing(0);
        }
        assert!(sayers.contains(0), "what was said once is not forgotten");
        assert!(!Sayers::new(1, false).contains(0));
    }
}
