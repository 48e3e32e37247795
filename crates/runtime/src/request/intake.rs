//! Taking requests in: polled in batches, checked, classified.

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Scratch, Tx};
use headway_net::header::{Flag, HEADER_BYTES, Status};
use headway_net::pool::{FreeList, MAX_SLOTS, PoolError, SlotId, SlotPool};
use headway_net::slot::Slot;

use crate::request::classifier::ServerClassifier;
use crate::request::refusal::Refusals;
use crate::stats::tally::{ShedCause, Tally};

/// Most requests taken in at once: enough to spread a system call's cost, few enough that completions are not kept
/// waiting.
pub(crate) const BATCH: usize = 64;

/// The pool, and the buffers of it that one thread receives into.
pub(crate) struct Buffers {
    pub(crate) pool: Arc<SlotPool>,
    pub(crate) free: FreeList,
    /// For refusals while all others are in use.
    pub(crate) spare: FreeList,
    /// For requests that are interrupted: each gives one of them to its receiver.
    pub(crate) rooms: FreeList,
}

impl Buffers {
    /// `slots` free buffers; spare ones, a batch for each of `receivers` threads; and, as far as a pool has more, one for each of `rooms` interrupted
    /// requests. The first lie at the beginning of the pool: where nothing else is asked for, all numbers are below the policy's bound.
    ///
    /// # Errors
    /// [`PoolError`]: there is not enough memory.
    pub(crate) fn new(slots: usize, receivers: usize, rooms: usize) -> Result<Self, PoolError> {
        let with_spare = MAX_SLOTS.min(slots + receivers * BATCH).max(slots);
        let most = MAX_SLOTS.min(with_spare + rooms).max(with_spare);
        let (pool, mut rooms) = SlotPool::new(most)?;
        let mut spare = rooms.split_off(with_spare);
        let free = spare.split_off(slots);
        Ok(Self {
            pool: Arc::new(pool),
            free,
            spare,
            rooms,
        })
    }

    /// The same buffers, without those for interrupted requests, as equal parts for so many threads.
    pub(crate) fn divided(mut self, threads: usize) -> Vec<Self> {
        let (free, spare) = (self.free.len() / threads, self.spare.len() / threads);
        (0..threads)
            .map(|_| Self {
                pool: Arc::clone(&self.pool),
                free: self.free.split_off(free),
                spare: self.spare.split_off(spare),
                rooms: self.rooms.split_off(0),
            })
            .collect()
    }
}

/// One thread's way from a receive queue to classified requests.
pub(crate) struct Intake {
    scratch: Scratch,
    classifier: ServerClassifier,
    /// Declared classes; also the number of UNKNOWN.
    unknown: u16,
    pub(crate) pool: Arc<SlotPool>,
    pub(crate) free: FreeList,
    /// Buffers for refusals while all others are in use, and how many they are when none holds one.
    spare: FreeList,
    spare_most: usize,
    pub(crate) refusals: Refusals,
    pub(crate) tally: Arc<Tally>,
    batch: Vec<SlotId>,
}

impl Intake {
    pub(crate) fn new(
        rx: &dyn Rx,
        classifier: ServerClassifier,
        unknown: u16,
        buffers: Buffers,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            scratch: rx.scratch(),
            classifier,
            unknown,
            pool: buffers.pool,
            free: buffers.free,
            spare_most: buffers.spare.len(),
            spare: buffers.spare,
            refusals: Refusals::new(2 * BATCH),
            tally,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Buffers that hold no request.
    #[cold]
    pub(crate) fn idle_buffers(&self) -> usize {
        self.free.len() + self.spare.len()
    }

    /// Takes up to `max` waiting requests, at most [`BATCH`], and hands those that are well-formed to `accept`, with
    /// their class in the slot. Returns how many came, well-formed or not.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        rx: &dyn Rx,
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

    /// Refuses up to [`BATCH`] waiting requests as shed, since no buffer is left to keep one in. Returns how many came.
    #[cold]
    pub(crate) fn shed(&mut self, rx: &dyn Rx, now_ns: u64) -> usize {
        if !self.may_refuse_batch() {
            return 0;
        }
        std::mem::swap(&mut self.free, &mut self.spare);
        let count = self.receive(rx, now_ns, BATCH, |intake, slot| {
            let class = intake.pool.get(&slot).class;
            intake.tally.class(class).accepted.add(1);
            intake.shed_one(slot);
        });
        std::mem::swap(&mut self.free, &mut self.spare);
        count
    }

    /// Whether all of a batch may be refused before refusals are sent.
    #[inline]
    pub(crate) fn may_refuse_batch(&self) -> bool {
        self.refusals.room() >= BATCH
    }

    /// Refuses a request that was accepted, as shed. Until the refusal is sent a spare buffer takes the place of the one that holds it: refused longs
    /// leave the buffers that are kept from them to the requests behind them.
    #[cold]
    pub(crate) fn shed_one(&mut self, slot: SlotId) {
        if let Some(spare) = self.spare.take() {
            self.free.give(spare);
        }
        let class = self.pool.get(&slot).class;
        self.tally.class(class).shed(ShedCause::NoBuffer);
        self.refuse(slot, Status::Shed);
    }

    /// Refuses up to [`BATCH`] waiting requests, since the server drains. Returns how many came. From the first call on none is accepted.
    #[cold]
    pub(crate) fn turn_away(&mut self, rx: &dyn Rx, now_ns: u64) -> usize {
        self.spare_most = 0;
        while let Some(slot) = self.spare.take() {
            self.free.give(slot);
        }
        self.receive(rx, now_ns, BATCH, |intake, slot| {
            intake.tally.refused_draining.add(1);
            intake.refuse(slot, Status::Draining);
        })
    }

    /// Refuses all that waits at the queue now, since the server ends: with the queue it would go without an answer, in no count. What
    /// comes meanwhile may stay: a flood does not keep the server from its end.
    #[cold]
    pub(crate) fn turn_all_away(&mut self, rx: &dyn Rx, tx: &mut dyn Tx, now_ns: u64) {
        let mut waiting = rx.backlog_hint();
        while waiting > 0 {
            let count = self.turn_away(rx, now_ns);
            self.flush(tx, now_ns);
            if count == 0 {
                break;
            }
            waiting = waiting.saturating_sub(count);
        }
    }

    /// Sends the refusals so far and frees their slots.
    #[inline]
    pub(crate) fn flush(&mut self, tx: &mut dyn Tx, now_ns: u64) {
        let unsent = self.refusals.flush(tx, &self.pool, &mut self.free, now_ns);
        if unsent > 0 {
            self.tally.unsent.add(unsent);
        }
        while self.spare.len() < self.spare_most
            && let Some(slot) = self.free.take()
        {
            self.spare.give(slot);
        }
    }

    #[inline]
    fn check(&mut self, mut slot: SlotId) -> Option<SlotId> {
        let buffer = self.pool.get_mut(&mut slot);
        if !is_answerable(buffer.payload()) || !self.classifier.is_request(buffer.payload()) {
            self.tally.malformed.add(1);
            self.free.give(slot);
            return None;
        }
        if buffer.truncated {
            self.tally.too_large.add(1);
            self.refuse(slot, Status::TooLarge);
            return None;
        }
        buffer.class = self.class_of(buffer);
        Some(slot)
    }

    #[inline]
    fn class_of(&self, buffer: &Slot) -> u16 {
        let class = self.classifier.classify(buffer.payload());
        class
            .filter(|class| *class < self.unknown)
            .unwrap_or(self.unknown)
    }

    /// Hands a request back to a rack's switch.
    #[cold]
    pub(crate) fn hand_back(&mut self, slot: SlotId, tx: &mut dyn Tx, now_ns: u64) {
        if self.refusals.is_full() {
            self.flush(tx, now_ns);
        }
        let class = self.pool.get(&slot).class;
        self.tally.class(class).handed_back.add(1);
        self.refusals.hand_back(&self.pool, slot);
    }

    #[cold]
    pub(crate) fn refuse(&mut self, slot: SlotId, status: Status) {
        self.refusals.refuse(&self.pool, slot, status);
    }
}

/// Whether there may be somebody to answer: the datagram has a header, and is no response of a server like this one. Two servers that
/// answered responses would go on for ever after one forged datagram, whatever their classifiers.
#[inline]
fn is_answerable(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER_BYTES && !Flag::from_bits(datagram[1]).is_sent_response()
}
