//! The kthreads of one application: which one to wake on a core (Shenango § 4.1.2).

use super::ids::{CoreId, KthreadId};
use crate::BitSet;
use alloc::vec::Vec;

const NIL: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct KthreadLink {
    older: u16,
    newer: u16,
    parked: bool,
}

/// Parked kthreads in the order of their parking, as a list threaded through one vector.
#[derive(Clone)]
pub(super) struct Kthreads {
    links: Vec<KthreadLink>,
    oldest: u16,
    newest: u16,
    /// Who ran last on each core.
    last_on: Vec<u16>,
    /// Parked in the middle of something that nobody else can go on with.
    interrupted: BitSet,
}

impl Kthreads {
    /// `kthreads` of them, all parked, the first the longest.
    pub(super) fn new(kthreads: usize, cores: usize) -> Self {
        let unlinked = KthreadLink {
            older: NIL,
            newer: NIL,
            parked: false,
        };
        let mut all = Self {
            links: alloc::vec![unlinked; kthreads],
            oldest: NIL,
            newest: NIL,
            last_on: alloc::vec![NIL; cores],
            interrupted: BitSet::EMPTY,
        };
        for kthread in 0..kthreads {
            all.park(KthreadId(kthread as u16));
        }
        all
    }

    /// Parked kthreads of these are woken before others: what they were in the middle of waits for them alone.
    pub(super) fn set_interrupted(&mut self, interrupted: &BitSet) {
        let is_parked = |&kthread: &usize| self.links.get(kthread).is_some_and(|link| link.parked);
        self.interrupted = interrupted.iter().filter(is_parked).collect();
    }

    /// Takes the one to wake on `core`: who was interrupted, else who ran there last, else who is parked the longest, so
    /// that the others stay for the cores whose caches know them.
    pub(super) fn take(&mut self, core: CoreId) -> Option<KthreadId> {
        let last = self.last_on[core.index()];
        let chosen = match (self.interrupted.first(), self.links.get(last as usize)) {
            (Some(interrupted), _) => interrupted as u16,
            (None, Some(link)) if link.parked => last,
            _ => self.oldest,
        };
        if chosen == NIL {
            return None;
        }
        self.unlink(chosen);
        self.last_on[core.index()] = chosen;
        Some(KthreadId(chosen))
    }

    /// Takes this one, which runs on `core` already; whether it was parked.
    pub(super) fn take_this(&mut self, kthread: KthreadId, core: CoreId) -> bool {
        let is_parked = self
            .links
            .get(kthread.index())
            .is_some_and(|link: &KthreadLink| link.parked);
        if is_parked {
            self.unlink(kthread.0);
            self.last_on[core.index()] = kthread.0;
        }
        is_parked
    }

    pub(super) fn park(&mut self, kthread: KthreadId) {
        let newest = self.newest;
        self.links[kthread.index()] = KthreadLink {
            older: newest,
            newer: NIL,
            parked: true,
        };
        match self.links.get_mut(newest as usize) {
            Some(link) => link.newer = kthread.0,
            None => self.oldest = kthread.0,
        }
        self.newest = kthread.0;
    }

    fn unlink(&mut self, kthread: u16) {
        let KthreadLink { older, newer, .. } = self.links[kthread as usize];
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
        self.interrupted.remove(usize::from(kthread));
        self.links[kthread as usize].parked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_ran_there_last_comes_back_and_else_the_longest_parked() {
        let mut kthreads = Kthreads::new(3, 4);
        let on = |core| CoreId(core);
        assert_eq!(kthreads.take(on(0)), Some(KthreadId(0)));
        assert_eq!(kthreads.take(on(1)), Some(KthreadId(1)));
        kthreads.park(KthreadId(1));
        kthreads.park(KthreadId(0));
        assert_eq!(kthreads.take(on(0)), Some(KthreadId(0)), "it ran there");
        assert_eq!(
            kthreads.take(on(3)),
            Some(KthreadId(2)),
            "nobody did: longest parked"
        );
        assert_eq!(kthreads.take(on(2)), Some(KthreadId(1)));
        assert_eq!(kthreads.take(on(1)), None, "none is left");
    }

    #[test]
    fn who_was_interrupted_goes_on_first_and_only_once() {
        let mut kthreads = Kthreads::new(3, 2);
        kthreads.set_interrupted(&BitSet::range(2, 3));
        assert_eq!(kthreads.take(CoreId(0)), Some(KthreadId(2)));
        kthreads.set_interrupted(&BitSet::range(2, 3));
        assert_eq!(
            kthreads.take(CoreId(1)),
            Some(KthreadId(0)),
            "the other runs already"
        );
        kthreads.park(KthreadId(2));
        kthreads.park(KthreadId(0));
        kthreads.set_interrupted(&BitSet::range(0, 1));
        assert_eq!(kthreads.take(CoreId(0)), Some(KthreadId(0)));
        assert_eq!(
            kthreads.take(CoreId(0)),
            Some(KthreadId(1)),
            "longest parked"
        );
    }

    proptest! {
        /// Against a plain list.
        #[test]
        fn behaves_like_a_list(steps in prop::collection::vec((0u16..6, any::<bool>()), 1..200)) {
            let mut kthreads = Kthreads::new(5, 6);
            let mut parked: Vec<u16> = (0..5).collect();
            let mut awake: Vec<u16> = Vec::new();
            let mut last = [None; 6];
            for (number, wake) in steps {
                if wake {
                    let known = last[usize::from(number)].filter(|k| parked.contains(k));
                    let expected = known.or(parked.first().copied());
                    let taken = kthreads.take(CoreId(number)).map(|k| k.0);
                    prop_assert_eq!(taken, expected);
                    if let Some(taken) = taken {
                        parked.retain(|&k| k != taken);
                        awake.push(taken);
                        last[usize::from(number)] = Some(taken);
                    }
                } else if !awake.is_empty() {
                    let kthread = awake.remove(usize::from(number) % awake.len());
                    kthreads.park(KthreadId(kthread));
                    parked.push(kthread);
                }
            }
        }
    }
}
