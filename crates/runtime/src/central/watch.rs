//! The dispatcher's eye on what runs: when which request began, whose time has come, whom to interrupt.

use std::sync::{Arc, OnceLock};

use headway_fiber::Asker;
use headway_policy::server::role::{Backlog, Ingress, Monitor, Preempt, PreemptionDecision};
use headway_policy::{ClassId, JobId, WorkerId};

use super::worker_link::DispatcherEnd;
use crate::queue::links::NextHint;
use crate::request::assignment::{Assignment, AssignmentCell};
use crate::request::verdict::{SliceVerdict, VerdictCell};
use crate::stats::overruns::{ENDLESS_NS, Overruns};
use crate::stats::own_time::{OwnTime, SuspectedRun};
use crate::stats::tally::Tally;
use headway_sync::atomic::{AtomicU64, Ordering};

/// Without a monitor that wants to know at once, assignments are read this often, ns: each that changed costs a cache miss, and a
/// quantum is counted from when the request began, not from when that was seen.
const LOOK_NS: u64 = 500;

/// Who was asked to yield and goes on is asked again after so long, ns: a handler may stay long where no probe is, and it costs one store.
const AGAIN_NS: u64 = 200_000;

/// What a worker that may be interrupted shares with the dispatcher.
#[derive(Default)]
pub(super) struct CentralWorkerSlot {
    pub(super) assignment: AssignmentCell,
    /// Known once the worker's thread runs.
    pub(super) asker: OnceLock<Asker>,
    /// The time that the thread has had a core; known once it runs.
    pub(super) own_time: OnceLock<OwnTime>,
    /// When the dispatcher first asked the request that runs to yield, ns; of an earlier one where it did not.
    pub(super) asked_ns: AtomicU64,
    /// What the dispatcher decided, where the worker keeps the time itself.
    pub(super) verdict: VerdictCell,
}

/// How a dispatcher and the workers that it watches are told of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Telling {
    /// The worker that is asked to yield is told which request comes next.
    AskedWithHint,
    /// The worker is asked to yield.
    Asked,
    /// The worker keeps the time itself, and looks for the [`SliceVerdict`].
    Verdicts,
}

/// The message to a worker that takes no hints: that it was asked.
const ASKED: u64 = 1;

/// What a worker that looks at its own assignment learns.
pub(super) enum Look {
    /// The request goes on.
    GoesOn {
        /// When the monitor wants to look again; `u64::MAX` for never.
        due_ns: u64,
        /// After how much service the monitor wanted to look at it first, ns.
        after_ns: u64,
    },
    Yields,
}

/// A monitor and what it watches.
pub(super) struct CentralWatch<M> {
    monitor: M,
    telling: Telling,
    workers: Box<[WatchedAssignment]>,
    looked_ns: u64,
    overruns: Arc<Overruns>,
    /// The dispatcher's own.
    tally: Arc<Tally>,
}

/// A worker, and what the dispatcher knows of its current assignment.
struct WatchedAssignment {
    worker_slot: Arc<CentralWorkerSlot>,
    /// The assignment seen last.
    epoch: u64,
    job: JobId,
    class: ClassId,
    /// When it was first asked to yield; never where it is `u64::MAX`.
    asked_ns: u64,
    /// The worker's own time since it was late to yield.
    suspected: SuspectedRun,
    /// Whether it was counted as an overrun.
    overran: bool,
    /// Whether it was not reported ended.
    runs: bool,
    /// When to ask the monitor about it; never where it is `u64::MAX`.
    due_ns: u64,
    /// After how much service the monitor wanted to be asked first, ns.
    after_ns: u64,
}

/// The requests that workers hold, as monitors see them.
pub(super) struct HeldRequests<'a>(pub(super) &'a [DispatcherEnd]);

impl<M: Monitor> CentralWatch<M> {
    pub(super) fn new(
        monitor: M,
        telling: Telling,
        worker_slots: &[Arc<CentralWorkerSlot>],
        overruns: Arc<Overruns>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            monitor,
            telling,
            workers: worker_slots.iter().map(WatchedAssignment::new).collect(),
            looked_ns: 0,
            overruns,
            tally,
        }
    }

    /// Goes on by these rules. What runs is looked at when it was to be looked at.
    pub(super) fn adopt(&mut self, fresh: &M) {
        self.monitor.adopt(fresh);
    }

    /// The worker reported that it finished the request, or gave it back.
    #[inline]
    pub(super) fn ended(&mut self, now_ns: u64, worker: usize, job: JobId) {
        if !M::PREEMPTS {
            return;
        }
        let watched = &mut self.workers[worker];
        if watched.runs && watched.job == job {
            watched.runs = false;
            watched.due_ns = u64::MAX;
            let id = WorkerId(worker as u16);
            return self.monitor.stopped(now_ns, id, watched.epoch);
        }
        // The assignment was over before it was read: it must not count as running later.
        if let Some(assignment) = watched
            .new_assignment()
            .filter(|assignment| assignment.job == job.0)
        {
            watched.epoch = assignment.epoch;
        }
    }

    /// Looks who began what since the last time, and interrupts whose time has come.
    #[inline]
    pub(super) fn look<I: Ingress>(
        &mut self,
        now_ns: u64,
        ingress: &mut I,
        links: &HeldRequests<'_>,
    ) {
        if !M::PREEMPTS || !M::POLLS && now_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        for worker in 0..self.workers.len() {
            if links.0[worker].held > 0 {
                self.look_at(now_ns, worker, ingress, links);
            }
        }
        if M::POLLS {
            self.poll(now_ns, ingress, links);
        }
    }

    /// Looks at one worker, which runs the assignment of this epoch and waits for the answer.
    #[inline]
    pub(super) fn look_at_own<I: Ingress>(
        &mut self,
        now_ns: u64,
        worker: usize,
        epoch: u64,
        ingress: &mut I,
        links: &HeldRequests<'_>,
    ) -> Look {
        if M::PREEMPTS {
            self.look_at(now_ns, worker, ingress, links);
        }
        let watched = &self.workers[worker];
        if watched.epoch == epoch && watched.asked_ns != u64::MAX {
            return Look::Yields;
        }
        Look::GoesOn {
            due_ns: watched.due_ns,
            after_ns: watched.after_ns,
        }
    }

    fn look_at<I: Ingress>(
        &mut self,
        now_ns: u64,
        worker: usize,
        ingress: &mut I,
        links: &HeldRequests<'_>,
    ) {
        let id = WorkerId(worker as u16);
        let Self {
            monitor,
            telling,
            workers,
            overruns,
            tally,
            ..
        } = self;
        let watched = &mut workers[worker];
        if let Some(assignment) = watched.new_assignment() {
            if watched.runs {
                monitor.stopped(now_ns, id, watched.epoch);
            }
            watched.epoch = assignment.epoch;
            watched.job = JobId(assignment.job);
            watched.runs = true;
            watched.asked_ns = u64::MAX;
            watched.suspected = SuspectedRun::default();
            watched.overran = false;
            watched.due_ns = u64::MAX;
            let since_ns = assignment.since_ns.min(now_ns);
            if let Some(job) = ingress.dispatched(watched.job) {
                watched.class = job.class;
                let after_ns = monitor.started(since_ns, id, job, watched.epoch, links);
                watched.after_ns = after_ns.unwrap_or(u64::MAX);
                watched.due_ns = since_ns.saturating_add(watched.after_ns);
                watched.goes_on(*telling);
            }
        }
        if now_ns < watched.due_ns {
            return;
        }
        match monitor.expired(now_ns, id, ingress, links) {
            PreemptionDecision::Preempt => {
                watched.due_ns = now_ns + AGAIN_NS;
                watched.ask(now_ns, *telling, || message(*telling, worker, links), tally);
                if watched.overruns_for_long(now_ns) {
                    overruns.still_runs(tally, watched.class.0);
                }
            }
            PreemptionDecision::Renew(for_ns)
            | PreemptionDecision::RenewAlone(for_ns)
            | PreemptionDecision::RenewWhileQuiet {
                each_ns: for_ns, ..
            } => {
                watched.due_ns = now_ns + for_ns;
                tally.renewed(worker, watched.class.0);
                watched.goes_on(*telling);
            }
            PreemptionDecision::Leave => {
                watched.due_ns = u64::MAX;
                watched.goes_on(*telling);
            }
        }
    }

    fn poll<I: Ingress>(&mut self, now_ns: u64, ingress: &I, links: &HeldRequests<'_>) {
        if self
            .monitor
            .next_deadline_ns()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.monitor.tick(now_ns, links);
        }
        while let Some(Preempt { worker, epoch }) = self.monitor.poll(now_ns, ingress, links) {
            let telling = self.telling;
            let watched = &mut self.workers[worker.index()];
            if watched.epoch == epoch {
                watched.ask(
                    now_ns,
                    telling,
                    || message(telling, worker.index(), links),
                    &self.tally,
                );
            }
        }
    }
}

impl WatchedAssignment {
    fn new(worker_slot: &Arc<CentralWorkerSlot>) -> Self {
        Self {
            worker_slot: Arc::clone(worker_slot),
            epoch: 0,
            job: JobId(u32::MAX),
            class: ClassId(0),
            asked_ns: u64::MAX,
            suspected: SuspectedRun::default(),
            overran: false,
            runs: false,
            due_ns: u64::MAX,
            after_ns: u64::MAX,
        }
    }

    /// What the worker took up since the last look.
    #[inline]
    fn new_assignment(&self) -> Option<Assignment> {
        self.worker_slot
            .assignment
            .read()
            .filter(|assignment| assignment.epoch != self.epoch)
    }

    /// Tells a worker that keeps the time itself until when its request goes on.
    #[inline]
    fn goes_on(&self, telling: Telling) {
        if telling == Telling::Verdicts {
            let goes_on = SliceVerdict::GoesOn {
                until_ns: self.due_ns,
                quantum_ns: self.after_ns,
            };
            self.worker_slot.verdict.publish(self.epoch, goes_on);
        }
    }

    /// Asks the request that runs to yield.
    #[inline]
    fn ask(&mut self, now_ns: u64, telling: Telling, message: impl FnOnce() -> u64, tally: &Tally) {
        if self.asked_ns == u64::MAX {
            self.asked_ns = now_ns;
            self.worker_slot.asked_ns.store(now_ns, Ordering::Relaxed);
            tally.class(self.class.0).preemptions_asked.add(1);
        }
        if telling == Telling::Verdicts {
            self.worker_slot
                .verdict
                .publish(self.epoch, SliceVerdict::Yields);
        } else if let Some(asker) = self.worker_slot.asker.get() {
            asker.ask_with(self.epoch, message());
        }
    }

    /// Whether its thread has run on for so long since it was asked that it may never yield; true once.
    #[inline]
    fn overruns_for_long(&mut self, now_ns: u64) -> bool {
        if self.overran || now_ns.saturating_sub(self.asked_ns) < AGAIN_NS {
            return false;
        }
        let own_time = self.worker_slot.own_time.get();
        self.overran = own_time.is_some_and(|thread| self.suspected.own_ns(thread) > ENDLESS_NS);
        self.overran
    }
}

/// What to tell a worker that is asked to yield.
#[inline]
fn message(telling: Telling, worker: usize, links: &HeldRequests<'_>) -> u64 {
    if telling == Telling::AskedWithHint {
        links.next(worker).map_or(0, NextHint::into_word)
    } else {
        ASKED
    }
}

impl HeldRequests<'_> {
    /// The request behind the one that the worker runs.
    #[inline]
    fn next(&self, worker: usize) -> Option<NextHint> {
        let link = &self.0[worker];
        link.jobs.next_hint(link.held)
    }
}

/// Workers of a dispatcher share no queue and tell the others nothing.
impl Backlog for HeldRequests<'_> {
    fn workers(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.0[worker.index()].held.saturating_sub(1)
    }

    fn shared_counters(&self, _queue: usize) -> (u64, u64) {
        (0, 0)
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
