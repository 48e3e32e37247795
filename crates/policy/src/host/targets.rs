//! Towards a given split: the allocators that plan ahead say how many cores each application shall
//! have, and this moves cores until it is so.

use super::evictions::Evictions;
use super::selection::{Taking, select};
use super::{AppId, AppShape, CoreId, Cores, HeldCore, HostShape, Move};
use crate::Rng;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many cores each application shall have, and the moves on the way there.
pub(super) struct Targets {
    pub(super) cores: Cores,
    wanted: Vec<usize>,
    moves: VecDeque<Move>,
    evictions: Evictions,
    rng: Rng,
}

impl Targets {
    /// Every core idle, and nobody to have any. Who does not leave within `evict_ns` is moved away.
    pub(super) fn new(shape: &HostShape, evict_ns: u64) -> Self {
        Self {
            cores: Cores::new(shape),
            wanted: alloc::vec![0; shape.apps.len()],
            moves: VecDeque::with_capacity(2 * shape.topology.cores()),
            evictions: Evictions::new(shape.topology.cores(), shape.apps.len(), evict_ns),
            rng: Rng::new(shape.seed),
        }
    }

    /// Splits the cores: to every application that answers requests what `demand` says, first up
    /// to the guarantees, then one by one in turn; the rest to batch applications, one by one in turn.
    pub(super) fn split(&mut self, now_ns: u64, demand: impl Fn(AppId) -> usize) {
        let mut left = self.cores.total();
        for app in self.cores.ids() {
            let shape = self.cores.shape(app);
            let entitled = if self.cores.is_batch(app) {
                shape.guaranteed
            } else {
                shape.guaranteed.min(demand(app))
            };
            self.wanted[app.index()] = entitled;
            left -= entitled;
        }
        for batch in [false, true] {
            left = self.deal(left, batch, &demand);
        }
        self.move_on(now_ns);
    }

    /// Deals cores in turn to the applications of one kind; how many are left.
    fn deal(&mut self, mut left: usize, batch: bool, demand: &impl Fn(AppId) -> usize) -> usize {
        loop {
            let before = left;
            for app in self
                .cores
                .ids()
                .filter(|&app| self.cores.is_batch(app) == batch)
            {
                let most = self.cores.shape(app).most;
                let wanted = if batch { most } else { most.min(demand(app)) };
                if left > 0 && self.wanted[app.index()] < wanted {
                    self.wanted[app.index()] += 1;
                    left -= 1;
                }
            }
            if left == before {
                return left;
            }
        }
    }

    /// The core's tenant has left it.
    pub(super) fn released(&mut self, now_ns: u64, core: CoreId) {
        let released = self.cores.release(core);
        self.evictions.left(core, released.from.app);
        self.move_on(now_ns);
    }

    /// An application has the slot from now on, and the cores that it holds already; it wants none until the next split.
    pub(super) fn admit(&mut self, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.cores.admit(app, shape, holding);
        self.evictions.forget(app);
    }

    /// The application is gone, and its cores are free.
    pub(super) fn retire(&mut self, app: AppId) {
        for core in self.cores.active(app).iter() {
            self.cores.release(CoreId(core as u16));
            self.evictions.left(CoreId(core as u16), app);
        }
        self.moves.retain(|decision: &Move| decision.app() != app);
        self.cores.vacate(app);
        self.wanted[app.index()] = 0;
    }

    /// When somebody who was told to leave has had the time for it.
    pub(super) fn next_eviction_ns(&self) -> Option<u64> {
        self.evictions.next_ns()
    }

    /// Moves those away.
    pub(super) fn evict(&mut self, now_ns: u64) {
        self.evictions.due(now_ns, &self.cores, &mut self.moves);
    }

    pub(super) fn poll(&mut self) -> Option<Move> {
        self.moves.pop_front()
    }

    /// Takes from who has too much, gives to who has too little.
    fn move_on(&mut self, now_ns: u64) {
        for app in self.cores.ids() {
            while self.cores.held(app) > self.wanted[app.index()] {
                let last = self.last_of(app);
                let Some((core, revoke)) =
                    last.and_then(|core| Some((core, self.cores.revoke(core, None)?)))
                else {
                    break;
                };
                self.moves.push_back(revoke);
                self.evictions.told(core, app, now_ns);
            }
        }
        for app in self.cores.ids() {
            while self.cores.held(app) < self.wanted[app.index()] {
                let core = select(&self.cores, app, Taking::Nothing, &mut self.rng);
                let Some(grant) = core.and_then(|core| self.cores.grant(core, app)) else {
                    break;
                };
                self.moves.push_back(grant);
            }
        }
    }

    fn last_of(&self, app: AppId) -> Option<CoreId> {
        let cores = self
            .cores
            .active(app)
            .iter()
            .map(|core| CoreId(core as u16));
        cores
            .filter(|core: &CoreId| !self.cores.is_leaving(*core))
            .last()
    }
}
