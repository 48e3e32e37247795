//! The queues as one worker sees them.

use std::sync::Arc;

use headway_net::pool::SlotId;
use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::{BitSet, ClassId, JobId, WorkerId};

use super::common::{ARRIVALS, Common};
use crate::queue::run_queue::RequestQueue;
use crate::queue::token::RequestWord;
use crate::stats::tally::Tally;
use headway_sync::run_queue::Stolen;

/// One worker's own requests, and its way to the shared queue and to the others'.
pub(super) struct UnplacedQueues {
    me: WorkerId,
    common: Arc<Common>,
    /// Requests that the worker took and has not yet run.
    run_queue: RequestQueue,
    /// Requests in the worker's own hands: they are to be run, or were interrupted.
    held: Box<[Option<RequestWord>]>,
    tally: Arc<Tally>,
}

impl UnplacedQueues {
    /// `slots`: buffers in the pool.
    pub(super) fn new(
        me: WorkerId,
        common: Arc<Common>,
        run_queue: RequestQueue,
        slots: usize,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            me,
            common,
            run_queue,
            held: (0..slots).map(|_| None).collect(),
            tally,
        }
    }

    /// A request that is to run now, or to go into a queue.
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
    #[inline]
    pub(super) fn keep(&mut self, slot: SlotId) {
        self.hold(RequestWord::suspended(slot));
    }

    /// Whether the worker's own queue is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.run_queue.len() == 0
    }

    /// The requests in the own queue.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.run_queue.len()
    }

    /// Puts the requests that the worker helped itself to back into the queue of all, before it gives its core back.
    pub(super) fn give_back(&mut self) {
        let mut back = 0;
        while let Some(request) = self.run_queue.pop() {
            let refused = self.common.queues[ARRIVALS].push(request);
            assert!(refused.is_none(), "the queue has room for every buffer");
            back += 1;
        }
        if back > 0 {
            self.common.moved(back, 0);
        }
    }

    /// Counts the requests in the own queue, which nobody will run.
    pub(super) fn give_up(&mut self) {
        while let Some(request) = self.run_queue.pop() {
            self.tally.abandoned.add(1);
            // An interrupted handler, which never goes on, still borrows its buffer.
            if !request.is_suspended() {
                self.common.release(request.into_slot());
            }
        }
    }
}

impl Backlog for UnplacedQueues {
    #[inline]
    fn workers(&self) -> usize {
        self.common.thieves.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.common.thieves[worker.index()].len()
    }

    #[inline]
    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.common.queues[queue].counters()
    }

    fn congested(&self) -> u64 {
        0
    }

    fn short_ns(&self, _worker: WorkerId) -> u64 {
        0
    }

    fn is_long(&self, _worker: WorkerId, _class: ClassId) -> bool {
        false
    }
}

impl Queues for UnplacedQueues {
    #[inline]
    fn me(&self) -> WorkerId {
        self.me
    }

    /// Who has nothing looks at the shared queue, which is as near to all.
    fn sibling(&self) -> Option<WorkerId> {
        None
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        let request = self.run_queue.pop()?;
        Some(self.hold(request))
    }

    #[inline]
    fn push(&mut self, job: JobId) {
        let request = self.take(job);
        self.run_queue.push(request);
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let thief = &self.common.thieves[victim.index()];
        match thief.steal(max, &mut self.run_queue) {
            Stolen::Batch(count) => {
                self.tally.stolen.add(count as u64);
                if let Some(cores) = &self.common.cores {
                    cores.stolen(victim.index(), count);
                }
                Steal::Batch(count)
            }
            Stolen::Retry => Steal::Retry,
            Stolen::Empty => Steal::Empty,
        }
    }

    #[inline]
    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let request = self.common.queues[queue].pop()?;
        self.common.moved(0, 1);
        Some(self.hold(request))
    }

    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        let request = self.take(job);
        let refused = self.common.queues[queue].push(request);
        let fits = refused.is_none();
        match refused {
            Some(request) => {
                self.hold(request);
            }
            None => self.common.moved(1, 0),
        }
        fits
    }

    fn set_short_ns(&mut self, _mean_ns: u64) {
        unreachable!("workers that help themselves tell the others nothing")
    }

    fn set_longs(&mut self, _longs: BitSet) {
        unreachable!("workers that help themselves tell the others nothing")
    }

    fn set_sheds_first(&mut self, _classes: BitSet) {
        unreachable!("the shared queue sheds")
    }
}
