//! The queues as one worker sees them.

use std::sync::Arc;

use headway_net::datapath::Tx;
use headway_net::pool::SlotId;
use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::{BitSet, ClassId, JobId, WorkerId};

use super::peers::Peers;
use crate::queue::run_queue::RequestQueue;
use crate::queue::token::RequestWord;
use crate::request::intake::{BATCH, Intake};
use crate::threads::hosted::HostedCores;
use headway_sync::run_queue::Stolen;

/// One worker's own requests, and its way to the others'.
pub(super) struct SteeredQueues {
    me: usize,
    /// The worker on the other hyper-thread of this one's core, where both are pinned.
    sibling: Option<WorkerId>,
    intake: Intake,
    peers: Arc<Peers>,
    /// When the worker last looked at the clock.
    now_ns: u64,
    /// How often it looks for arrivals while it is busy, ns.
    look_ns: u64,
    /// Whether it asks while a request runs.
    at_work: bool,
    /// When it last looked for arrivals because an interrupted request came back to its queue.
    looked_ns: u64,
    /// Requests taken in and not yet run.
    run_queue: RequestQueue,
    /// Requests in the worker's own hands: they are to be run, or were interrupted.
    held: Box<[Option<RequestWord>]>,
    /// The classes that this worker refuses first as buffers run out.
    sheds_first: BitSet,
    /// Requests it may still take from receive queues: all, until the server drains.
    allowance: usize,
    /// Of a server whose workers come and go.
    cores: Option<Arc<HostedCores>>,
    /// When it last looked at the queues of workers without cores, ns.
    looked_after_ns: u64,
}

impl SteeredQueues {
    pub(super) fn new(
        me: usize,
        sibling: Option<WorkerId>,
        intake: Intake,
        peers: Arc<Peers>,
        run_queue: RequestQueue,
        cores: Option<Arc<HostedCores>>,
        look_ns: u64,
    ) -> Self {
        let slots = intake.pool.len();
        Self {
            me,
            sibling,
            intake,
            peers,
            now_ns: 0,
            look_ns,
            at_work: false,
            looked_ns: 0,
            run_queue,
            held: (0..slots).map(|_| None).collect(),
            sheds_first: BitSet::EMPTY,
            allowance: usize::MAX,
            cores,
            looked_after_ns: 0,
        }
    }

    /// The same, of a worker that refuses requests of these classes first as buffers run out.
    pub(super) fn shedding_first(mut self, classes: BitSet) -> Self {
        self.sheds_first = classes;
        self
    }

    /// It is this late now.
    #[inline]
    pub(super) fn advance_to(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// What `ask` wants to know is asked while a request runs: it is to cost little.
    #[inline]
    pub(super) fn while_at_work<T>(&mut self, now_ns: u64, ask: impl FnOnce(&mut Self) -> T) -> T {
        self.now_ns = now_ns;
        self.at_work = true;
        let answer = ask(self);
        self.at_work = false;
        answer
    }

    /// A request that is to run now.
    #[inline]
    pub(super) fn take(&mut self, job: JobId) -> RequestWord {
        let request = self.held[job.index()].take();
        request.expect("a policy runs what it was given, once")
    }

    #[inline]
    fn hold(&mut self, request: RequestWord) -> JobId {
        let job = request.job();
        self.held[job.index()] = Some(request);
        job
    }

    /// A request was interrupted here.
    pub(super) fn keep(&mut self, slot: SlotId) -> JobId {
        self.hold(RequestWord::suspended(slot))
    }

    /// A request is interrupted for the first time: its buffer is no receiver's any more.
    #[inline]
    pub(super) fn give_back(&mut self) {
        self.peers.give_back(&mut self.intake.free);
    }

    /// The request was answered.
    #[inline]
    pub(super) fn release(&mut self, slot: SlotId) {
        self.peers.release(slot, &mut self.intake.free);
    }

    /// The same, of one that had been interrupted.
    #[inline]
    pub(super) fn release_room(&mut self, slot: SlotId) {
        self.peers.release_room(slot, &mut self.intake.free);
    }

    /// Sends the refusals of the last poll.
    #[inline]
    pub(super) fn flush(&mut self, tx: &mut dyn Tx, now_ns: u64) {
        self.intake.flush(tx, now_ns);
    }

    /// Takes no more than so many requests in from now on.
    pub(super) fn limit(&mut self, allowance: usize) {
        self.allowance = self.allowance.min(allowance);
    }

    /// Buffers of this worker's part that are free: the most that a drain has to take in.
    pub(super) fn free(&self) -> usize {
        self.intake.free.len()
    }

    /// Refuses what came to the own queue; returns how much.
    pub(super) fn turn_away(&mut self) -> usize {
        self.intake.turn_away(self.peers.rx(self.me), self.now_ns)
    }

    /// Gives up requests that were taken in and not run, and refuses those that wait at the own queue.
    pub(super) fn give_up(&mut self, tx: &mut dyn Tx, now_ns: u64) {
        self.flush(tx, now_ns);
        let shared = self.peers.give_up_shared();
        self.intake.tally.abandoned.add(shared as u64);
        while let Some(request) = self.run_queue.pop() {
            self.intake.tally.abandoned.add(1);
            // An interrupted handler, which never goes on, still borrows its buffer.
            if !request.is_suspended() {
                self.release(request.into_slot());
            }
        }
        let rx = self.peers.rx(self.me);
        self.intake.turn_all_away(rx, tx, now_ns);
        // So that every buffer ends with a list of its pool.
        self.peers.provide(usize::MAX, &mut self.intake.free);
        self.peers.take_rooms(&mut self.intake.free);
    }

    /// Polls a receive queue into the own run queue; returns how many requests came that can run.
    #[inline]
    fn pull(&mut self, worker: usize, max: usize) -> usize {
        let Self {
            intake,
            peers,
            run_queue,
            now_ns,
            cores,
            sheds_first,
            ..
        } = self;
        // Refusals that wait to be sent leave no room for those of another batch.
        if !intake.may_refuse_batch() {
            return 0;
        }
        if let Some(cores) = cores {
            cores.polled(worker, *now_ns);
        }
        let max = max.min(self.allowance);
        peers.provide(max.min(BATCH), &mut intake.free);
        if max > 0 && intake.free.is_empty() {
            let shed = intake.shed(peers.rx(worker), *now_ns);
            self.allowance -= shed.min(self.allowance);
            return 0;
        }
        let mut free = peers.free_for(&intake.free);
        let mut accepted = 0;
        let received = intake.receive(peers.rx(worker), *now_ns, max, |intake, slot| {
            let class = intake.pool.get(&slot).class;
            intake.tally.class(class).accepted.add(1);
            if peers.is_short_of(free) && sheds_first.contains(usize::from(class)) {
                return intake.shed_one(slot);
            }
            free -= 1;
            run_queue.push(RequestWord::fresh(slot));
            accepted += 1;
        });
        peers.share_surplus(&mut intake.free);
        peers.polled(*now_ns, worker, received < max.min(BATCH));
        self.allowance -= received.min(self.allowance);
        accepted
    }

    /// Requests taken in and not yet run.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.run_queue.len()
    }

    /// Whether no request waits that this worker could run: anywhere that nobody else looks.
    pub(super) fn finds_nothing(&self) -> bool {
        let is_mine = |worker: &usize| {
            let cores = self.cores.as_ref();
            *worker == self.me || cores.is_some_and(|cores| !cores.is_active(*worker))
        };
        let mut mine = (0..self.peers.workers()).filter(is_mine);
        mine.all(|worker| self.peers.len(WorkerId(worker as u16)) == 0)
            && self.peers.shared_are_empty()
    }

    /// Takes over what waits at workers without cores, as often as a busy worker looks for arrivals, or `at_once`.
    #[cold]
    fn look_after_absent(&mut self, at_once: bool) {
        let look_ns = self.look_ns;
        let Some(cores) = self.cores.clone() else {
            return;
        };
        if !at_once && self.now_ns < self.looked_after_ns + look_ns {
            return;
        }
        self.looked_after_ns = self.now_ns;
        for worker in 0..self.peers.workers() {
            if worker == self.me || cores.is_active(worker) {
                continue;
            }
            if let Stolen::Batch(count) = self.peers.thief(worker).steal(BATCH, &mut self.run_queue)
            {
                cores.stolen(worker, count);
            }
            self.pull(worker, BATCH);
        }
    }

    /// Takes malformed or oversized datagrams out of the way until a request comes or nothing is left.
    #[inline]
    fn refill(&mut self) {
        let mut tally = self.intake.tally.received.get();
        while self.pull(self.me, BATCH) == 0 {
            let received = self.intake.tally.received.get();
            if received == tally {
                break;
            }
            tally = received;
        }
    }
}

impl Backlog for SteeredQueues {
    #[inline]
    fn workers(&self) -> usize {
        self.peers.workers()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        if self.at_work {
            self.peers.glance(self.now_ns, worker)
        } else {
            self.peers.len(worker)
        }
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.peers.shared_counters(queue)
    }

    #[inline]
    fn congested(&self) -> u64 {
        self.peers.congested()
    }

    #[inline]
    fn short_ns(&self, worker: WorkerId) -> u64 {
        self.peers.short_ns(worker)
    }

    #[inline]
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool {
        self.peers.is_long(worker, class)
    }
}

impl Queues for SteeredQueues {
    #[inline]
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    fn sibling(&self) -> Option<WorkerId> {
        self.sibling
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        if self.run_queue.len() == 0 {
            self.refill();
        }
        if self.cores.as_ref().is_some_and(|cores| cores.has_absent()) {
            self.look_after_absent(self.run_queue.len() == 0);
        }
        let request = self.run_queue.pop()?;
        Some(self.hold(request))
    }

    /// Behind what arrived meanwhile: the receive queue and the run queue are one to the policy.
    fn push(&mut self, job: JobId) {
        if self.now_ns >= self.looked_ns + self.look_ns {
            self.looked_ns = self.now_ns;
            self.pull(self.me, BATCH);
        }
        let request = self.take(job);
        self.run_queue.push(request);
    }

    /// From the victim's run queue, else from its receive queue, which it does not look at while it runs a request.
    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let thief = self.peers.thief(victim.index());
        let count = match thief.steal(max, &mut self.run_queue) {
            Stolen::Batch(count) => {
                if let Some(cores) = &self.cores {
                    cores.stolen(victim.index(), count);
                }
                count
            }
            Stolen::Retry => return Steal::Retry,
            Stolen::Empty => self.pull(victim.index(), max),
        };
        if count == 0 {
            return Steal::Empty;
        }
        self.intake.tally.stolen.add(count as u64);
        Steal::Batch(count)
    }

    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let request = self.peers.pop_shared(queue)?;
        Some(self.hold(request))
    }

    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        let request = self.take(job);
        let refused = self.peers.push_shared(queue, request);
        let fits = refused.is_none();
        if let Some(request) = refused {
            self.hold(request);
        }
        fits
    }

    fn set_short_ns(&mut self, mean_ns: u64) {
        self.peers.set_short_ns(self.me, mean_ns);
    }

    fn set_longs(&mut self, longs: BitSet) {
        self.peers.set_longs(self.me, &longs);
    }

    fn set_sheds_first(&mut self, classes: BitSet) {
        self.sheds_first = classes;
    }
}
