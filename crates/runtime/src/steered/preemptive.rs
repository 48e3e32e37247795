//! A steered worker whose requests may be interrupted: it runs them on fibers, in slices that end as its monitor and its local policy say.
//!
//! With a core to spare, a [thread of its own](super::monitor) carries the monitor out, and interrupts requests by a flag. Else no core keeps
//! time for others: each worker has a clone of the monitor, which hears of that worker alone, and ends slices itself. What a monitor finds out
//! for all ([`tick`](headway_policy::server::role::Ticking::tick)) then one worker at a time does, whoever comes by when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_fiber::{Attached, ByFlag, Preempter};
use headway_net::pool::SlotId;
use headway_policy::server::role::{Backlog, Local, Monitor, PreemptionDecision, Queues, Unplaced};
use headway_policy::{ClassId, Job, JobId, WorkerId};

use super::peers::Peers;
use super::view::SteeredQueues;
use super::worker::{RequestRunner, SteeredWorker};
use super::worker_slot::SteeredWorkerSlot;
use crate::request::fibers::Fibers;
use crate::request::run_slice::{SliceOwner, TakenRequest, run_slice};
use crate::request::shared_fibers::FiberContext;
use crate::request::slice::SliceLimits;
use crate::stats::own_time::OwnTime;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::hosted::{LOOK_FOR_ORDERS_NS, WorkerCore};
use crate::threads::rules::RulesReceiver;
use headway_sync::Padded;
use headway_sync::trylock::TryLock;

/// The monitor that ticks for all workers.
pub(super) struct Timer<M> {
    monitor: TryLock<M>,
    /// When to tick, ns; never where it is `u64::MAX`.
    due_ns: Padded<AtomicU64>,
}

impl<M: Monitor> Timer<M> {
    pub(super) fn new(monitor: M) -> Self {
        let due_ns = monitor.next_deadline_ns().unwrap_or(u64::MAX);
        Self {
            monitor: TryLock::new(monitor),
            due_ns: Padded(AtomicU64::new(due_ns)),
        }
    }

    /// The shared queues that are congested from now on, if it was time to look.
    #[inline]
    fn tick(&self, now_ns: u64, queues: &impl Backlog) -> Option<u64> {
        if now_ns < self.due_ns.load(Ordering::Relaxed) {
            return None;
        }
        let mut monitor = self.monitor.try_lock()?;
        let congested = monitor.tick(now_ns, queues);
        let due_ns = monitor.next_deadline_ns().unwrap_or(u64::MAX);
        self.due_ns.store(due_ns, Ordering::Relaxed);
        Some(congested)
    }

    /// Goes on by these rules, unless another worker ticks or adopts just now.
    fn adopt(&self, fresh: &M) -> bool {
        let Some(mut monitor) = self.monitor.try_lock() else {
            return false;
        };
        monitor.adopt(fresh);
        let due_ns = monitor.next_deadline_ns().unwrap_or(u64::MAX);
        self.due_ns.store(due_ns, Ordering::Relaxed);
        true
    }
}

/// Who carries the monitor out.
pub(super) enum Timekeeper<M> {
    /// The worker, for itself.
    Worker {
        monitor: M,
        rules: RulesReceiver<M>,
        timer: Arc<Timer<M>>,
    },
    /// A thread with a core of its own, for all workers.
    Thread(Arc<SteeredWorkerSlot>),
}

impl<M: Monitor> Timekeeper<M> {
    #[inline]
    fn tick(&self, now_ns: u64, peers: &Peers) {
        if let Self::Worker { timer, .. } = self
            && let Some(congested) = timer.tick(now_ns, peers)
        {
            peers.set_congested(congested);
        }
    }

    /// Adopts new rules, unless another worker is in the way. A thread of its own adopts them itself.
    fn adopt(&mut self, control: &ServerControl) -> bool {
        let Self::Worker {
            monitor,
            rules,
            timer,
        } = self
        else {
            return true;
        };
        rules.adopt(control, |fresh| {
            monitor.adopt(fresh);
            timer.adopt(fresh)
        });
        !rules.are_new(control)
    }

    /// The worker begins or resumes a request. When to ask about it, ns; never where it is `u64::MAX`.
    #[inline]
    fn started(
        &mut self,
        now_ns: u64,
        me: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &impl Backlog,
    ) -> u64 {
        match self {
            Self::Worker { monitor, .. } if M::PREEMPTS => {
                let after_ns = monitor.started(now_ns, me, job, epoch, queues);
                now_ns.saturating_add(after_ns.unwrap_or(u64::MAX))
            }
            Self::Worker { .. } => u64::MAX,
            Self::Thread(worker_slot) => {
                worker_slot.begin(epoch, job, now_ns);
                u64::MAX
            }
        }
    }

    /// The request said that it is long. When to ask about it, ns; `None`: as before.
    fn said_long(
        &mut self,
        now_ns: u64,
        me: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &impl Backlog,
    ) -> Option<u64> {
        match self {
            Self::Worker { monitor, .. } => {
                let after_ns = monitor.said_long(now_ns, me, job, epoch, queues)?;
                Some(now_ns.saturating_add(after_ns))
            }
            Self::Thread(worker_slot) => {
                worker_slot.begin(epoch, job, now_ns);
                None
            }
        }
    }

    /// The time came that was asked for. When to ask again; `None`: the request yields.
    #[inline]
    fn expired(&mut self, now_ns: u64, me: WorkerId, queues: &impl Backlog) -> Option<u64> {
        let Self::Worker { monitor, .. } = self else {
            return Some(u64::MAX);
        };
        match monitor.expired(now_ns, me, &Unplaced, queues) {
            PreemptionDecision::Preempt => None,
            PreemptionDecision::Renew(for_ns)
            | PreemptionDecision::RenewAlone(for_ns)
            | PreemptionDecision::RenewWhileQuiet {
                each_ns: for_ns, ..
            } => Some(now_ns + for_ns),
            PreemptionDecision::Leave => Some(u64::MAX),
        }
    }

    #[inline]
    fn stopped(&mut self, now_ns: u64, me: WorkerId, epoch: u64) {
        match self {
            Self::Worker { monitor, .. } => monitor.stopped(now_ns, me, epoch),
            Self::Thread(worker_slot) => worker_slot.end(),
        }
    }
}

/// A worker thread whose requests may be interrupted.
pub(super) struct PreemptiveWorker<L, M> {
    pub(super) worker: SteeredWorker<L>,
    pub(super) timekeeper: Timekeeper<M>,
    pub(super) fiber_context: FiberContext,
}

impl<L, M> PreemptiveWorker<L, M>
where
    L: Local,
    M: Monitor,
{
    /// Serves until the server stops.
    pub(super) fn run(self) {
        let me = WorkerId(self.worker.index as u16);
        let attached = Attached::new();
        let control = Arc::clone(&self.worker.control);
        // Dropping `attached` waits until the monitor's thread has dropped the flag: after a panic here it must hear of the end.
        let (_left, _stopped);
        match &self.timekeeper {
            Timekeeper::Worker { .. } => attached.self_timed(true),
            Timekeeper::Thread(worker_slot) => {
                attached.self_timed(L::SLICES);
                let asker = ByFlag::new(&attached).asker();
                worker_slot.set_asker(asker.expect("another thread asks by a flag"));
                let _ = worker_slot.own_time.set(OwnTime::of_current());
                _stopped = control.stop_on_panic();
                _left = LeavesSlot(Arc::clone(worker_slot));
            }
        }
        let runner = InSlices {
            me,
            timekeeper: self.timekeeper,
            fibers: Fibers::new(self.fiber_context, me, &attached).renewing_in_place(),
        };
        self.worker.serve(runner);
    }
}

/// Tells the monitor's thread, when it is dropped, that the worker has ended.
struct LeavesSlot(Arc<SteeredWorkerSlot>);

impl Drop for LeavesSlot {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs requests on fibers, a slice at a time.
struct InSlices<'a, M> {
    me: WorkerId,
    timekeeper: Timekeeper<M>,
    fibers: Fibers<'a>,
}

/// When a running request's slices end, ns; never where it is `u64::MAX`.
struct SliceDeadlines {
    /// The monitor's.
    monitor_ns: u64,
    /// The local policy's.
    local_ns: u64,
    /// When to look whether the worker must give its core back.
    orders_ns: u64,
}

impl SliceDeadlines {
    /// How long until the first of them; `None` for never.
    #[inline]
    fn after(&self, now_ns: u64) -> Option<u64> {
        let first_ns = self.monitor_ns.min(self.local_ns).min(self.orders_ns);
        (first_ns < u64::MAX).then(|| first_ns.saturating_sub(now_ns).max(1))
    }

    /// A slice is over. `None`: the request yields.
    #[inline]
    fn renew<L: Local, M: Monitor>(
        &mut self,
        now_ns: u64,
        me: WorkerId,
        timekeeper: &mut Timekeeper<M>,
        local: &mut L,
        view: &SteeredQueues,
    ) -> Option<u64> {
        if now_ns >= self.monitor_ns {
            self.monitor_ns = timekeeper.expired(now_ns, me, view)?;
        }
        if now_ns >= self.local_ns {
            self.local_ns = now_ns + local.renew(now_ns, view)?;
        }
        if now_ns >= self.orders_ns {
            self.orders_ns = now_ns + LOOK_FOR_ORDERS_NS;
        }
        self.after(now_ns)
    }
}

impl<L, M> RequestRunner<L> for InSlices<'_, M>
where
    L: Local,
    M: Monitor,
{
    #[inline]
    fn tick(&mut self, now_ns: u64, worker: &SteeredWorker<L>) {
        self.timekeeper.tick(now_ns, &worker.peers);
    }

    fn adopt(&mut self, control: &ServerControl) -> bool {
        self.timekeeper.adopt(control)
    }

    #[inline]
    fn run(&mut self, id: JobId, slice_ns: Option<u64>, worker: &mut SteeredWorker<L>) -> u64 {
        let SteeredWorker {
            local,
            view,
            executor,
            peers,
            control,
            backoff,
            core,
            ..
        } = worker;
        let core = core.as_ref();
        let Self {
            me,
            timekeeper,
            fibers,
        } = self;
        let me = *me;
        let request = view.take(id);
        let suspended = request.is_suspended();
        let slot = request.into_slot();
        let epoch = fibers.next_epoch();
        let now = fibers.now();
        let (class, arrived_ns) = executor.describe(&slot);
        // What the monitor says of a request that begins decides what it runs on; but a monitor with a thread of its own may ask any request to yield.
        let is_decided = suspended || matches!(timekeeper, Timekeeper::Thread(_));
        let (mut slot, mut said_long) = (slot, false);
        if is_decided {
            (slot, said_long) = fibers.take_up(slot, suspended, true);
        }
        let job = Job {
            said_long,
            ..Job::new(id, ClassId(class), arrived_ns)
        };
        let deadlines = SliceDeadlines {
            monitor_ns: timekeeper.started(now.ns, me, &job, epoch, view),
            local_ns: now.ns.saturating_add(slice_ns.unwrap_or(u64::MAX)),
            orders_ns: core.map_or(u64::MAX, |_| now.ns + LOOK_FOR_ORDERS_NS),
        };
        let first_ns = deadlines.after(now.ns);
        if !is_decided {
            (slot, _) = fibers.take_up(slot, suspended, first_ns.is_some());
        }
        let mut owner = SteeredOwner {
            me,
            epoch,
            suspended,
            local,
            view,
            timekeeper,
            deadlines,
            peers,
            control,
            core,
            renewals: 0,
        };
        let taken = TakenRequest { slot, suspended };
        let ran = run_slice(fibers, executor, &mut owner, taken, now, first_ns);
        backoff.ran(&ran.span_ns());
        ran.span.end.ns
    }
}

/// A steered worker, while it runs a request.
struct SteeredOwner<'a, L, M> {
    me: WorkerId,
    epoch: u64,
    /// Whether the request was interrupted before.
    suspended: bool,
    local: &'a mut L,
    view: &'a mut SteeredQueues,
    timekeeper: &'a mut Timekeeper<M>,
    deadlines: SliceDeadlines,
    peers: &'a Peers,
    control: &'a ServerControl,
    core: Option<&'a WorkerCore>,
    renewals: u64,
}

impl<L: Local, M: Monitor> SliceLimits for SteeredOwner<'_, L, M> {
    #[inline]
    fn renew(&mut self, now_ns: u64, asked: bool) -> Option<u64> {
        let leaves = self.core.is_some_and(WorkerCore::is_revoked);
        if asked || leaves || self.control.phase() >= ServerPhase::Abandoning {
            return None;
        }
        self.timekeeper.tick(now_ns, self.peers);
        let Self {
            me,
            deadlines,
            timekeeper,
            local,
            ..
        } = self;
        let for_ns = self.view.while_at_work(now_ns, |view| {
            deadlines.renew(now_ns, *me, timekeeper, *local, view)
        })?;
        self.renewals += 1;
        Some(for_ns)
    }

    #[inline]
    fn said_long(&mut self, now_ns: u64, job: &Job) -> Option<u64> {
        let Self {
            timekeeper,
            local,
            view,
            ..
        } = self;
        local.said_long(job, *view);
        let monitor_ns = timekeeper.said_long(now_ns, self.me, job, self.epoch, *view)?;
        self.deadlines.monitor_ns = monitor_ns;
        self.deadlines.after(now_ns)
    }
}

impl<L: Local, M: Monitor> SliceOwner for SteeredOwner<'_, L, M> {
    /// The message of who asks says it.
    #[inline]
    fn unanswered_since_ns(&self, fibers: &Fibers<'_>) -> Option<u64> {
        fibers.unanswered_message()
    }

    #[inline]
    fn stopped(&mut self, now_ns: u64) {
        self.timekeeper.stopped(now_ns, self.me, self.epoch);
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, slot: SlotId) {
        self.local.finished(now_ns, job, cpu_ns, self.view);
        if self.suspended {
            self.view.release_room(slot);
        } else {
            self.view.release(slot);
        }
    }

    #[inline]
    fn yielded(&mut self, now_ns: u64, job: &Job, slot: SlotId, _message: u64) {
        self.view.keep(slot);
        if !self.suspended {
            self.view.give_back();
        }
        let abandoning = self.control.phase() >= ServerPhase::Abandoning;
        if abandoning || !self.local.yielded(now_ns, job, self.view) {
            self.view.push(job.id);
        }
    }

    fn refused(&mut self, _now_ns: u64, _job: &Job, slot: SlotId) {
        self.view.release(slot);
    }

    #[inline]
    fn renewals(&mut self) -> u64 {
        self.renewals
    }

    #[inline]
    fn counts_interruptions(&self) -> bool {
        true
    }
}
