//! What a dispatcher knows of its workers: who is there, and how many requests each holds.

use crate::BitSet;
use crate::server::{MAX_WORKERS, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// Presence and occupancy. Workers of equal occupancy form a bit set, a level, so that "the least
/// occupied, lowest index" is the first of the lowest level that has anyone.
pub struct Workers {
    present: BitSet,
    occupancy: Vec<u32>,
    /// `levels[n]`: present workers that hold exactly `n` requests, for `n` below the bound.
    levels: Vec<BitSet>,
    /// No level below this one has anyone.
    lowest: usize,
    /// Whoever holds more is at this level.
    deepest: u32,
}

impl Workers {
    /// Levels told apart where queues are unbounded. Workers that hold more count as equal: then
    /// each has a thousand requests, and whose queue is shortest no longer matters.
    const TOLD_APART: usize = 1024;

    /// Workers `0..count`, idle, of which each may hold `depth` requests, the running one
    /// included; [`usize::MAX`] for any number.
    ///
    /// # Panics
    /// When `depth` is 0 or `count` exceeds [`MAX_WORKERS`].
    #[must_use]
    pub fn new(count: usize, depth: usize) -> Self {
        assert!(depth > 0, "a worker holds at least the request it runs");
        let present = BitSet::range(0, count);
        let (told_apart, deepest) = match depth {
            usize::MAX => (Self::TOLD_APART, Self::TOLD_APART as u32 - 1),
            depth => (depth, u32::MAX),
        };
        let mut levels = vec![BitSet::EMPTY; told_apart];
        levels[0] = present;
        Self {
            present,
            occupancy: vec![0; MAX_WORKERS],
            levels,
            lowest: 0,
            deepest,
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

    /// Requests that the worker holds.
    #[inline]
    #[must_use]
    pub fn held(&self, worker: WorkerId) -> u32 {
        self.occupancy[worker.index()]
    }

    /// Whether the worker, there or on its way out, may hold one more.
    #[inline]
    #[must_use]
    pub fn fits(&self, worker: WorkerId) -> bool {
        self.deepest != u32::MAX || (self.held(worker) as usize) < self.levels.len()
    }

    /// The least occupied worker with room, the lowest index among equals.
    #[inline]
    #[must_use]
    pub fn shortest(&self) -> Option<WorkerId> {
        let worker = self.levels.get(self.lowest)?.first()?;
        Some(WorkerId(worker as u16))
    }

    /// All the least occupied workers, for ties broken otherwise; `None` when no one has room.
    #[inline]
    #[must_use]
    pub fn least(&self) -> Option<&BitSet> {
        self.levels
            .get(self.lowest)
            .filter(|level| !level.is_empty())
    }

    /// Workers with room, ascending by what they hold.
    #[inline]
    pub fn levels(&self) -> impl Iterator<Item = &BitSet> {
        self.levels[self.lowest.min(self.levels.len())..].iter()
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
        let anyone = self.levels.iter().position(|level| !level.is_empty());
        self.lowest = anyone.unwrap_or(self.levels.len() - 1);
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
        if let [idle] = &mut *self.levels {
            // Where a worker holds one request at most, it is idle or not: there are no levels to go through.
            return idle.set(index, after == 0);
        }
        let before = before.min(self.deepest) as usize;
        let after = after.min(self.deepest) as usize;
        let mut deserted = false;
        if let Some(level) = self.levels.get_mut(before) {
            level.remove(index);
            deserted = before == self.lowest && level.is_empty();
        }
        if let Some(level) = self.levels.get_mut(after) {
            level.insert(index);
        }
        // Whoever leaves the lowest level as the last one goes up by one: there the next begins.
        self.lowest = if deserted {
            after
        } else {
            self.lowest.min(after)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes and goes: the least occupied is that of a plain search.
        #[test]
        fn the_least_occupied_is_found(
            depth in prop_oneof![1usize..5, Just(usize::MAX)],
            steps in prop::collection::vec((0u8..8, 0usize..7), 1..300),
        ) {
            let mut workers = Workers::new(7, depth);
            let (mut held, mut present) = ([0usize; 7], [true; 7]);
            for (what, w) in steps {
                let id = WorkerId(w as u16);
                match what {
                    0 => { workers.remove(id); present[w] = false; }
                    1 => { workers.add(id); present[w] = true; }
                    2..5 if held[w] > 0 => { workers.release(id); held[w] -= 1; }
                    _ if present[w] && held[w] < depth => { workers.occupy(id); held[w] += 1; }
                    _ => {}
                }
                let room = (0..7).filter(|&w| present[w] && held[w] < depth);
                let least = room.clone().map(|w| held[w]).min();
                let all: BitSet = room.filter(|&w| Some(held[w]) == least).collect();
                prop_assert_eq!(workers.shortest().map(WorkerId::index), all.first());
                prop_assert_eq!(workers.least().copied().unwrap_or_default(), all);
                let idle: BitSet = (0..7).filter(|&w| present[w] && held[w] == 0).collect();
                prop_assert_eq!(*workers.idle(), idle);
                prop_assert_eq!(workers.levels().find_map(BitSet::first), all.first());
            }
        }
    }

    #[test]
    fn unbounded_queues_never_fill() {
        let mut workers = Workers::new(2, usize::MAX);
        for _ in 0..3_000 {
            workers.occupy(WorkerId(0));
            workers.occupy(WorkerId(1));
        }
        assert_eq!(workers.held(WorkerId(1)), 3_000);
        assert_eq!(workers.least().map(BitSet::len), Some(2), "both are deep");
        for _ in 0..2_500 {
            workers.release(WorkerId(1));
        }
        assert_eq!(workers.shortest(), Some(WorkerId(1)));
    }
}
