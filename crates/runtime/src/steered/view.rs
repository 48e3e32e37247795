//! The queues as one worker sees them.

use std::collections::VecDeque;
use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_net::pool::SlotId;
use headway_policy::role::{Backlog, Queues, Steal};
use headway_policy::{JobId, WorkerId};

use super::peers::Peers;
use crate::intake::{BATCH, Intake};
use crate::token::job_of;

/// One worker's own requests, and its way to the others'.
pub(super) struct View<R: Rx, C> {
    me: usize,
    intake: Intake<R, C>,
    peers: Arc<Peers<R>>,
    /// When the worker last looked at the clock.
    now_ns: u64,
    /// Taken in and not yet run; outside of batches, empty.
    own: VecDeque<JobId>,
    /// Tokens of the requests taken in, by job.
    tokens: Box<[Option<SlotId>]>,
    /// Requests taken in at once: one where thieves may want the others.
    batch: usize,
    /// Requests it may still take from its own queue: all, until the server drains.
    allowance: usize,
}

impl<R: Rx, C: Classifier> View<R, C> {
    pub(super) fn new(me: usize, intake: Intake<R, C>, peers: Arc<Peers<R>>, steals: bool) -> Self {
        let slots = intake.pool.len();
        Self {
            me,
            intake,
            peers,
            now_ns: 0,
            own: VecDeque::with_capacity(slots),
            tokens: (0..slots).map(|_| None).collect(),
            batch: if steals { 1 } else { BATCH },
            allowance: usize::MAX,
        }
    }

    /// It is this late now.
    #[inline]
    pub(super) fn advance_to(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The buffer of a request that is to run now.
    #[inline]
    pub(super) fn take(&mut self, job: JobId) -> SlotId {
        let slot = self.tokens[job.index()].take();
        slot.expect("a policy runs what it was given, once")
    }

    /// The request was answered.
    #[inline]
    pub(super) fn release(&mut self, slot: SlotId) {
        self.intake.free.give(slot);
    }

    /// Sends the refusals of the last poll.
    #[inline]
    pub(super) fn flush(&mut self, tx: &mut impl Tx, now_ns: u64) {
        self.intake.flush(tx, now_ns);
    }

    /// Takes no more than so many requests in from now on.
    pub(super) fn limit(&mut self, allowance: usize) {
        self.allowance = self.allowance.min(allowance);
    }

    /// Buffers of this worker's partition that are free: the most that a drain has to take in.
    pub(super) fn free(&self) -> usize {
        self.intake.free.len()
    }

    /// Refuses what came to the own queue; returns how much.
    pub(super) fn turn_away(&mut self) -> usize {
        self.intake.turn_away(self.peers.rx(self.me), self.now_ns)
    }

    /// Gives up requests that were taken in and not run, and refuses those that wait at the own queue.
    pub(super) fn give_up(&mut self, tx: &mut impl Tx, now_ns: u64) {
        self.flush(tx, now_ns);
        while let Some(job) = self.own.pop_front() {
            self.intake.tally.abandoned.add(1);
            let slot = self.take(job);
            self.release(slot);
        }
        let rx = self.peers.rx(self.me);
        self.intake.turn_all_away(rx, tx, now_ns);
    }

    /// Polls a receive queue into the own list; returns how many requests came that can run.
    #[inline]
    fn pull(&mut self, worker: usize, max: usize) -> usize {
        let Self {
            intake,
            peers,
            own,
            tokens,
            now_ns,
            ..
        } = self;
        let before = own.len();
        let received = intake.receive(peers.rx(worker), *now_ns, max, |intake, slot| {
            let class = intake.pool.get(&slot).class;
            intake.tally.class(class).accepted.add(1);
            let (job, slot) = job_of(slot);
            tokens[job.index()] = Some(slot);
            own.push_back(job);
        });
        self.allowance -= received.min(self.allowance);
        self.own.len() - before
    }

    /// Takes a malformed or oversized datagram out of the way until a request comes or nothing is left.
    #[inline]
    fn refill(&mut self) {
        let mut tally = self.intake.tally.received.get();
        while self.pull(self.me, self.batch.min(self.allowance)) == 0 {
            let received = self.intake.tally.received.get();
            if received == tally {
                break;
            }
            tally = received;
        }
    }
}

impl<R: Rx, C: Classifier> Backlog for View<R, C> {
    #[inline]
    fn workers(&self) -> usize {
        self.peers.count()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        let taken_in = if worker.index() == self.me {
            self.own.len()
        } else {
            0
        };
        taken_in + self.peers.rx(worker.index()).backlog_hint()
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.peers.shared_counters(queue)
    }

    fn congested(&self) -> u64 {
        0
    }

    fn short_ns(&self, _worker: WorkerId) -> u64 {
        0
    }
}

impl<R: Rx, C: Classifier> Queues for View<R, C> {
    #[inline]
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        if self.own.is_empty() {
            self.refill();
        }
        self.own.pop_front()
    }

    fn push(&mut self, job: JobId) {
        self.own.push_back(job);
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        // What a thief takes in is out of other thieves' reach, and would wait behind whatever it runs first.
        match self.pull(victim.index(), max.min(self.batch).min(self.allowance)) {
            0 => Steal::Empty,
            count => Steal::Batch(count),
        }
    }

    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let (job, slot) = job_of(self.peers.pop_shared(queue)?);
        self.tokens[job.index()] = Some(slot);
        Some(job)
    }

    fn push_shared(&mut self, queue: usize, job: JobId) {
        let slot = self.take(job);
        self.peers.push_shared(queue, slot);
    }

    fn set_short_ns(&mut self, _mean_ns: u64) {
        unreachable!("no system that runs here tells the others anything")
    }
}
