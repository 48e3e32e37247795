//! What a dispatcher knows of its workers: who is there, and how many requests each holds.

use crate::{BitSet, MAX_WORKERS, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// Presence and occupancy. Workers of equal occupancy form a bit set, so that "the least
/// occupied, lowest index" is a scan over as many sets as the queue bound.
pub struct Workers {
    present: BitSet,
    occupancy: Vec<u32>,
    /// `level[n]`: present workers that hold exactly `n` requests, for `n` below the bound.
    levels: Vec<BitSet>,
}

impl Workers {
    /// Workers `0..count`, idle, of which each may hold `depth` requests, the running one
    /// included.
    ///
    /// # Panics
    /// When `depth` is 0 or `count` exceeds [`MAX_WORKERS`].
    #[must_use]
    pub fn new(count: usize, depth: usize) -> Self {
        assert!(depth > 0, "a worker holds at least the request it runs");
        let present = BitSet::range(0, count);
        let mut levels = vec![BitSet::EMPTY; depth];
        levels[0] = present;
        Self {
            present,
            occupancy: vec![0; MAX_WORKERS],
            levels,
        }
    }

    /// Who is there.
    #[inline]
    #[must_use]
    pub fn present(&self) -> &BitSet {
        &self.present
    }

    /// Who is there and holds nothing.
    #[inline]
    #[must_use]
    pub fn idle(&self) -> &BitSet {
        &self.levels[0]
    }

    /// The least occupied worker with room, the lowest index among equals.
    #[inline]
    #[must_use]
    pub fn shortest(&self) -> Option<WorkerId> {
        self.levels
            .iter()
            .find_map(BitSet::first)
            .map(|worker| WorkerId(worker as u16))
    }

    /// All the least occupied workers, for ties broken otherwise; `None` when no one has room.
    #[inline]
    #[must_use]
    pub fn least(&self) -> Option<&BitSet> {
        self.levels.iter().find(|level| !level.is_empty())
    }

    /// One more request is at the worker.
    #[inline]
    pub fn occupy(&mut self, worker: WorkerId) {
        self.shift(worker, 1);
    }

    /// One request less is at the worker.
    ///
    /// # Panics
    /// When it holds none: the engine reported a completion that it was not dispatched.
    #[inline]
    pub fn release(&mut self, worker: WorkerId) {
        assert!(
            self.occupancy[worker.index()] > 0,
            "{worker:?} finished what it was not given"
        );
        self.shift(worker, -1);
    }

    /// The worker takes part from now on, with what it still holds.
    pub fn add(&mut self, worker: WorkerId) {
        self.present.insert(worker.index());
        self.shift(worker, 0);
    }

    /// The worker gets nothing more.
    pub fn remove(&mut self, worker: WorkerId) {
        self.present.remove(worker.index());
        for level in &mut self.levels {
            level.remove(worker.index());
        }
    }

    #[inline]
    fn shift(&mut self, worker: WorkerId, by: i32) {
        let index = worker.index();
        let before = self.occupancy[index];
        let after = before.wrapping_add_signed(by);
        self.occupancy[index] = after;
        if !self.present.contains(index) {
            return;
        }
        if let Some(level) = self.levels.get_mut(before as usize) {
            level.remove(index);
        }
        if let Some(level) = self.levels.get_mut(after as usize) {
            level.insert(index);
        }
    }
}
