//! Who was told to leave a core, and does not.

use super::moves::Move;
use super::{CoreId, Cores};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Since when each core's tenant is told to leave it. One that has not left after a bound is moved away, once.
pub(super) struct Evictions {
    after_ns: u64,
    since_ns: Vec<Option<u64>>,
}

impl Evictions {
    /// Nobody is told to leave any of so many cores.
    pub(super) fn new(cores: usize, after_ns: u64) -> Self {
        Self {
            after_ns,
            since_ns: alloc::vec![None; cores],
        }
    }

    /// The core's tenant was told to leave it.
    pub(super) fn told(&mut self, core: CoreId, now_ns: u64) {
        self.since_ns[core.index()] = Some(now_ns);
    }

    /// It has left, or is gone.
    pub(super) fn left(&mut self, core: CoreId) {
        self.since_ns[core.index()] = None;
    }

    /// When the next one has had its time.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let since_ns = self.since_ns.iter().flatten().min();
        since_ns.map(|since_ns| since_ns + self.after_ns)
    }

    /// The moves for those that have had theirs.
    pub(super) fn due(&mut self, now_ns: u64, cores: &Cores, moves: &mut VecDeque<Move>) {
        for (core, since_ns) in self.since_ns.iter_mut().enumerate() {
            if since_ns.is_none_or(|since_ns: u64| now_ns < since_ns + self.after_ns) {
                continue;
            }
            *since_ns = None;
            let core = CoreId(core as u16);
            if let Some(from) = cores.tenant(core) {
                moves.push_back(Move::Evict { core, from });
            }
        }
    }
}
