//! The power of d choices (Mitzenmacher, IEEE TPDS 12, 2001).

use super::{Placement, Workers};
use crate::Rng;
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The least occupied of `d` workers drawn with replacement, the first drawn among equals; `d = 1`
/// is a worker at random.
#[derive(Clone, Debug)]
pub struct Choices {
    draws: usize,
    rng: Rng,
}

impl Choices {
    /// So many draws, by `seed`.
    ///
    /// # Panics
    /// When there is no draw.
    #[must_use]
    pub fn new(draws: usize, seed: u64) -> Self {
        assert!(draws > 0, "one must be drawn");
        Self {
            draws,
            rng: Rng::new(seed),
        }
    }

    fn draw(&mut self, workers: &Workers) -> Option<WorkerId> {
        let present = workers.present();
        let position = self.rng.below(present.len());
        present.nth(position).map(|worker| WorkerId(worker as u16))
    }
}

impl Placement for Choices {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, _workers: &Workers) -> bool {
        true
    }

    #[inline]
    fn place(&mut self, _job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let mut best = self.draw(workers)?;
        for _ in 1..self.draws {
            let other = self.draw(workers)?;
            if workers.held(other) < workers.held(best) {
                best = other;
            }
        }
        Some(best)
    }

    fn adopt(&mut self, fresh: &Self) {
        self.draws = fresh.draws;
    }
}
