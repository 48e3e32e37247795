//! Taking requests in: polled in batches, checked, classified.

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::Rx;
use headway_net::header::{HEADER_BYTES, Status};
use headway_net::pool::{FreeList, Pool, SlotId};
use headway_net::slot::Slot;

use crate::refusal::Refusals;
use crate::tally::Tally;

/// Most requests taken in at once: enough to spread a system call's cost, few enough that completions are not kept
/// waiting.
pub(crate) const BATCH: usize = 64;

/// One thread's way from a receive queue to classified requests.
pub(crate) struct Intake<R: Rx, C> {
    scratch: R::Scratch,
    classifier: Arc<C>,
    /// Declared classes; also the number of UNKNOWN.
    unknown: u16,
    pub(crate) pool: Arc<Pool>,
    pub(crate) free: FreeList,
    pub(crate) refusals: Refusals,
    pub(crate) tally: Arc<Tally>,
    batch: Vec<SlotId>,
}

impl<R: Rx, C: Classifier> Intake<R, C> {
    pub(crate) fn new(
        rx: &R,
        classifier: Arc<C>,
        unknown: u16,
        (pool, free): (Arc<Pool>, FreeList),
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            scratch: rx.scratch(),
            classifier,
            unknown,
            pool,
            free,
            refusals: Refusals::new(2 * BATCH),
            tally,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Takes up to `max` waiting requests, at most [`BATCH`], and hands those that are well-formed to `accept`, with
    /// their class in the slot. Returns how many came, well-formed or not.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        rx: &R,
        now_ns: u64,
        max: usize,
        mut accept: impl FnMut(&mut Self, SlotId),
    ) -> usize {
        let max = max.min(BATCH);
        let mut batch = std::mem::take(&mut self.batch);
        let count = rx.poll(
            now_ns,
            &mut self.scratch,
            &self.pool,
            &mut self.free,
            &mut batch,
            max,
        );
        for slot in batch.drain(..) {
            if let Some(slot) = self.check(slot) {
                accept(self, slot);
            }
        }
        self.batch = batch;
        if count > 0 {
            self.tally.received.add(count as u64);
        }
        count
    }

    /// Refuses up to [`BATCH`] waiting requests, since the server drains. Returns how many came.
    #[cold]
    pub(crate) fn turn_away(&mut self, rx: &R, now_ns: u64) -> usize {
        self.receive(rx, now_ns, BATCH, |intake, slot| {
            intake.tally.refused_draining.add(1);
            intake.refuse(slot, Status::Draining);
        })
    }

    #[inline]
    fn check(&mut self, mut id: SlotId) -> Option<SlotId> {
        let slot = self.pool.get_mut(&mut id);
        if slot.payload().len() < HEADER_BYTES || !self.classifier.is_request(slot.payload()) {
            self.tally.malformed.add(1);
            self.free.give(id);
            return None;
        }
        if slot.truncated {
            self.tally.too_large.add(1);
            self.refuse(id, Status::TooLarge);
            return None;
        }
        slot.class = self.class_of(slot);
        Some(id)
    }

    #[inline]
    fn class_of(&self, slot: &Slot) -> u16 {
        let class = self.classifier.classify(slot.payload());
        class
            .filter(|class| *class < self.unknown)
            .unwrap_or(self.unknown)
    }

    #[cold]
    pub(crate) fn refuse(&mut self, slot: SlotId, status: Status) {
        self.refusals.refuse(&self.pool, slot, status);
    }
}
