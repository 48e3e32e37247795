//! A steered worker whose requests may be interrupted: it runs them on fibers and ends their slices itself, as its monitor and its local
//! policy say.
//!
//! No core keeps time for others: each worker has a clone of the monitor, which hears of that worker alone. What a monitor finds out for all
//! ([`Monitor::tick`]) one worker at a time does, whoever comes by when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_fiber::Attached;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Backlog, Local, Monitor, PreemptionDecision, Queues, Unplaced};
use headway_policy::{ClassId, Job, JobId, WorkerId};

use super::view::View;
use super::worker::{Runner, Worker};
use crate::control::{Control, Phase};
use crate::executor::Ran;
use crate::fibers::{FiberContext, Fibers, RanSlice, SliceEnd};
use crate::rules::RulesReceiver;
use crate::service::Service;
use crate::sync::Padded;
use crate::trylock::TryLock;

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

/// A worker thread whose requests may be interrupted.
pub(super) struct PreemptiveWorker<L, M, S, R: Rx, T, C> {
    pub(super) worker: Worker<L, S, R, T, C>,
    pub(super) monitor: M,
    pub(super) rules: RulesReceiver<M>,
    pub(super) timer: Arc<Timer<M>>,
    pub(super) fiber_context: FiberContext<S>,
}

impl<L, M, S, R, T, C> PreemptiveWorker<L, M, S, R, T, C>
where
    L: Local,
    M: Monitor,
    S: Service,
    R: Rx,
    T: Tx,
    C: Classifier,
{
    /// Serves until the server stops.
    pub(super) fn run(self) {
        let me = WorkerId(self.worker.index as u16);
        let attached = Attached::new();
        attached.self_timed(true);
        let runner = InSlices {
            me,
            monitor: self.monitor,
            rules: self.rules,
            timer: &self.timer,
            fibers: Fibers::new(self.fiber_context, me, &attached),
        };
        self.worker.serve(runner);
    }
}

/// Runs requests on fibers, a slice at a time.
struct InSlices<'a, M, S> {
    me: WorkerId,
    monitor: M,
    rules: RulesReceiver<M>,
    timer: &'a Timer<M>,
    fibers: Fibers<'a, S>,
}

/// When a running request's slices end, ns; never where it is `u64::MAX`.
struct Deadlines {
    /// The monitor's.
    monitor_ns: u64,
    /// The local policy's.
    local_ns: u64,
}

impl Deadlines {
    /// How long until the first of them; `None` for never.
    #[inline]
    fn after(&self, now_ns: u64) -> Option<u64> {
        let first_ns = self.monitor_ns.min(self.local_ns);
        (first_ns < u64::MAX).then(|| first_ns.saturating_sub(now_ns).max(1))
    }

    /// A slice is over. `None`: the request yields.
    #[inline]
    fn renew<L: Local, M: Monitor, R: Rx, C: Classifier>(
        &mut self,
        now_ns: u64,
        me: WorkerId,
        monitor: &mut M,
        local: &mut L,
        view: &View<R, C>,
    ) -> Option<u64> {
        if now_ns >= self.monitor_ns {
            self.monitor_ns = match monitor.expired(now_ns, me, &Unplaced, view) {
                PreemptionDecision::Preempt => return None,
                PreemptionDecision::Renew(for_ns) | PreemptionDecision::RenewAlone(for_ns) => {
                    now_ns + for_ns
                }
                PreemptionDecision::Leave => u64::MAX,
            };
        }
        if now_ns >= self.local_ns {
            self.local_ns = now_ns + local.renew(now_ns, view)?;
        }
        self.after(now_ns)
    }
}

impl<L, M, S, R, T, C> Runner<L, S, R, T, C> for InSlices<'_, M, S>
where
    L: Local,
    M: Monitor,
    S: Service,
    R: Rx,
    T: Tx,
    C: Classifier,
{
    #[inline]
    fn tick(&mut self, now_ns: u64, worker: &Worker<L, S, R, T, C>) {
        if let Some(congested) = self.timer.tick(now_ns, &*worker.peers) {
            worker.peers.set_congested(congested);
        }
    }

    fn adopt(&mut self, control: &Control) -> bool {
        let Self {
            monitor,
            rules,
            timer,
            ..
        } = self;
        rules.adopt(control, |fresh| {
            monitor.adopt(fresh);
            timer.adopt(fresh)
        });
        !rules.are_new(control)
    }

    #[inline]
    fn run(&mut self, id: JobId, slice_ns: Option<u64>, worker: &mut Worker<L, S, R, T, C>) {
        let Worker {
            local,
            view,
            executor,
            peers,
            control,
            backoff,
            ..
        } = worker;
        let Self {
            me,
            monitor,
            timer,
            fibers,
            ..
        } = self;
        let me = *me;
        let request = view.take(id);
        let (suspended, slot) = (request.is_suspended(), request.into_slot());
        let epoch = fibers.next_epoch();
        let now = fibers.now();
        let (class, arrived_ns) = executor.describe(&slot);
        let job = Job::new(id, ClassId(class), arrived_ns);
        let after_ns = M::PREEMPTS
            .then(|| monitor.started(now.ns, me, &job, epoch, view))
            .flatten();
        let since_now = |for_ns: Option<u64>| now.ns.saturating_add(for_ns.unwrap_or(u64::MAX));
        let mut deadlines = Deadlines {
            monitor_ns: since_now(after_ns),
            local_ns: since_now(slice_ns),
        };
        let mut renewals = 0;
        let first_ns = deadlines.after(now.ns);
        let RanSlice {
            mut slot,
            end,
            span,
            held,
        } = fibers.run(slot, suspended, now, first_ns, |now_ns, _asked| {
            if control.phase() >= Phase::Abandoning {
                return None;
            }
            if let Some(congested) = timer.tick(now_ns, &**peers) {
                peers.set_congested(congested);
            }
            let renewed = deadlines.renew(now_ns, me, monitor, local, view);
            renewals += u64::from(renewed.is_some());
            renewed
        });
        let span_ns = span.start.ns..span.end.ns;
        let now_ns = span_ns.end;
        backoff.ran(&span_ns);
        if M::PREEMPTS {
            monitor.stopped(now_ns, me, epoch);
        }
        let tally = executor.tally.class(class);
        tally.renewals.add(renewals);
        tally.resumed.add(u64::from(suspended));
        let yielded = matches!(end, SliceEnd::Yielded { .. });
        executor.tally.held(class, held, yielded);
        match end {
            SliceEnd::Finished {
                response,
                cpu_ns,
                late_ns,
            } => {
                executor.respond(&mut slot, response, cpu_ns, now_ns);
                executor.count(&Ran {
                    class,
                    span_ns,
                    cpu_ns,
                });
                fibers.count_late(&executor.tally, job.class, late_ns);
                local.finished(now_ns, &job, cpu_ns, view);
                view.release(slot);
            }
            SliceEnd::Yielded { job, sliced } => {
                Fibers::<S>::count_yield(&executor.tally, job.class, sliced);
                view.keep(slot);
                if control.phase() >= Phase::Abandoning || !local.yielded(now_ns, &job, view) {
                    view.push(job.id);
                }
            }
            SliceEnd::NoStack => {
                let slot = executor.refuse(slot, now_ns);
                view.release(slot);
            }
        }
    }
}
