//! A worker that may be interrupted: it runs requests on fibers, and its local policy says what is next.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use headway_fiber::{Asker, Attached, ByFlag, BySignal, Mechanism, Preempt};
use headway_net::datapath::{Rx, Tx};
use headway_net::pool::{Prefetch, SlotId};
use headway_policy::role::{Backlog, Local, Next, Queues, Steal};
use headway_policy::{ClassId, Job, JobId, WorkerId};

use super::dedicated::Beds;
use super::desk::Desk;
use super::watch::Seat;
use crate::bell::Bell;
use crate::control::{Control, Phase};
use crate::executor::{Executor, Outcome, Ran};
use crate::fibers::{Fibers, Reading, Stretch, Weft};
use crate::park::Patience;
use crate::pulse::Assignment;
use crate::service::Service;
use crate::token::{Notice, Parcel};

/// What one worker thread is made of.
pub(super) struct Worker<L, S, T, R> {
    pub(super) index: usize,
    pub(super) desk: Desk,
    pub(super) local: L,
    pub(super) executor: Executor<S, T>,
    pub(super) weft: Weft<S>,
    /// Whether the dispatcher watches what runs.
    pub(super) watched: bool,
    /// By what the dispatcher interrupts.
    pub(super) mechanism: Mechanism,
    pub(super) seat: Arc<Seat>,
    pub(super) bell: Arc<Bell<R>>,
    pub(super) control: Arc<Control>,
    pub(super) beds: Beds,
    pub(super) patience: Patience,
}

/// The same, running.
struct Active<'a, L, S, T, R> {
    view: View,
    local: L,
    fibers: Fibers<'a, S>,
    executor: Executor<S, T>,
    seat: Option<Arc<Seat>>,
    bell: Arc<Bell<R>>,
    control: Arc<Control>,
    beds: Beds,
    patience: Patience,
}

impl<L: Local, S: Service, T: Tx, R: Rx> Worker<L, S, T, R> {
    /// Runs what it is given until the server stops.
    pub(super) fn run(self) {
        let me = WorkerId(self.index as u16);
        let attached = Attached::new();
        attached.self_timed(L::SLICES);
        if self.watched {
            // The dispatcher is the only one who has this: the thread waits at its end until it has let go of it.
            let _ = self.seat.asker.set(asker(self.mechanism, &attached));
        }
        let fibers = Fibers::new(self.weft, me, &attached);
        let control = Arc::clone(&self.control);
        let active = Active {
            view: View::new(me, self.desk, self.executor.slots()),
            local: self.local,
            fibers,
            executor: self.executor,
            seat: self.watched.then_some(self.seat),
            bell: self.bell,
            control: self.control,
            beds: self.beds,
            patience: self.patience,
        };
        // Dropping `attached` waits until the dispatcher has ended, which nobody else would tell to.
        let _stop = control.stop_on_panic();
        active.serve();
    }
}

/// What a worker did.
enum Turn {
    /// Nothing: there is nothing to do.
    Idle,
    /// Something.
    Ran,
    /// It ran a request that was interrupted at this time. The next begins then, without another reading of the clock: nothing was sent in
    /// between.
    Interrupted(Reading),
}

/// By what others interrupt this thread.
fn asker(mechanism: Mechanism, attached: &Attached) -> Asker {
    let asker = match mechanism {
        #[expect(
            unsafe_code,
            reason = "any instruction may be followed by an interruption"
        )]
        Mechanism::Signal => {
            // SAFETY: within a fiber only the handler runs, whose author promised to bear it (`Builder::interrupt_by_signal`).
            let by_signal = unsafe { BySignal::new(attached) };
            by_signal.expect("it was checked at the start").asker()
        }
        _ => ByFlag::new(attached).asker(),
    };
    asker.expect("another thread asks by both")
}

impl<L: Local, S: Service, T: Tx, R: Rx> Active<'_, L, S, T, R> {
    fn serve(mut self) {
        let mut read = None;
        while self.control.phase() != Phase::Stopped {
            let now = read.take().unwrap_or_else(|| self.fibers.now());
            match self.turn(now) {
                Turn::Idle if self.patience.exhausted() => self.sleep(),
                Turn::Idle => continue,
                Turn::Ran => {}
                Turn::Interrupted(now) => read = Some(now),
            }
            self.patience.reset();
        }
        let left = self.view.give_up();
        self.executor.tally.abandoned.add(left as u64);
        self.seat = None;
    }

    /// Runs one request for as long as it may, if there is one and the server has not given up.
    #[inline(always)]
    fn turn(&mut self, now: Reading) -> Turn {
        if self.control.phase() >= Phase::Abandoning {
            return Turn::Idle;
        }
        let turn = match self.local.next(now.ns, &mut self.view) {
            Next::Run { job, slice_ns } => self.run(job, now, slice_ns),
            Next::Retry => Turn::Ran,
            Next::Idle => return Turn::Idle,
        };
        if self.patience.may_sleep() {
            self.bell.ring();
        }
        turn
    }

    #[inline(always)]
    fn run(&mut self, job: JobId, now: Reading, slice_ns: Option<u64>) -> Turn {
        let parcel = self.view.take(job);
        let (begun, slot) = (parcel.is_begun(), parcel.into_slot());
        let epoch = self.fibers.next_epoch();
        if let Some(seat) = &self.seat {
            seat.pulse.beat(Assignment {
                epoch,
                job: job.0,
                since_ns: now.ns,
            });
            let report = self.view.desk.done.next_place();
            self.fibers.next_writes([report, seat.pulse.place()]);
        } else {
            self.executor.prefetch(Prefetch::of(&slot));
        }
        if !self.view.was_told {
            self.view.prefetch_next(&self.executor);
        }
        self.fibers.next_read(self.view.desk.jobs.next_place());
        let (local, view) = (&mut self.local, &self.view);
        let renew = |now_ns| local.renew(now_ns, view);
        let (slot, stretch, span) = self.fibers.run((slot, begun), now, slice_ns, renew);
        let span_ns = span.start.ns..span.end.ns;
        self.patience.ran(&span_ns);
        match stretch {
            Stretch::Finished {
                outcome,
                cpu_ns,
                late_ns,
            } => {
                let class = self.finish(slot, outcome, (span_ns, cpu_ns));
                self.fibers.count_late(&self.executor.tally, class, late_ns);
            }
            Stretch::Yielded { job, sliced } => {
                self.view.told = self.told();
                Fibers::<S>::count_yield(&self.executor.tally, job.class, sliced);
                self.give_back(slot, &job, span.end.ns);
                return Turn::Interrupted(span.end);
            }
            Stretch::NoStack => {
                let slot = self.executor.refuse(slot, span_ns.end);
                self.view.desk.done.send(slot, 0);
            }
        }
        Turn::Ran
    }

    /// What the dispatcher said is next, when it interrupted the last request.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a notice comes as a word")]
    fn told(&self) -> Option<Notice> {
        // SAFETY: only the dispatcher, whose watch says nothing else, tells this thread anything, and only notices of its link with it; what was told is
        // forgotten when the next assignment begins.
        unsafe { Notice::of_word(self.fibers.told()) }
    }

    #[inline]
    fn finish(
        &mut self,
        mut slot: SlotId,
        outcome: Outcome,
        (span_ns, cpu_ns): (Range<u64>, u64),
    ) -> ClassId {
        let now_ns = span_ns.end;
        self.executor.respond(&mut slot, outcome, cpu_ns, now_ns);
        let (job, slot) = self.executor.job(slot);
        self.view.desk.done.send(slot, cpu_ns);
        // The dispatcher goes on meanwhile.
        self.local.finished(now_ns, &job, cpu_ns, &mut self.view);
        self.executor.count(&Ran {
            class: job.class.0,
            span_ns,
            cpu_ns,
        });
        job.class
    }

    /// The request was interrupted: it stays here, or goes back to the dispatcher.
    #[inline(always)]
    fn give_back(&mut self, slot: SlotId, job: &Job, now_ns: u64) {
        if self.control.phase() >= Phase::Abandoning {
            self.view.keep(slot);
            self.view.push(job.id);
        } else if self.local.yielded(now_ns, job, &mut self.view) {
            self.view.keep(slot);
        } else {
            self.view.desk.done.send_begun(slot, job.attained_ns);
        }
    }

    fn sleep(&mut self) {
        let (view, control) = (&self.view, &self.control);
        self.beds[view.me.index()]
            .park_unless(|| !view.is_empty() || control.phase() == Phase::Stopped);
        self.patience.slept();
    }
}

/// The worker's own queue: what came over its link, and what it keeps.
struct View {
    me: WorkerId,
    desk: Desk,
    own: VecDeque<JobId>,
    /// What comes next over the link, where who interrupted the last request said so.
    told: Option<Notice>,
    /// Whether what came last was told, so that the link's line lies with the dispatcher.
    was_told: bool,
    /// What was taken off the link and does not run, by job.
    parcels: Box<[Option<Parcel>]>,
}

impl View {
    fn new(me: WorkerId, desk: Desk, slots: usize) -> Self {
        Self {
            me,
            desk,
            own: VecDeque::with_capacity(slots),
            told: None,
            was_told: false,
            parcels: (0..slots).map(|_| None).collect(),
        }
    }

    #[inline]
    fn receive(&mut self) -> Option<JobId> {
        let told = self
            .told
            .take()
            .and_then(|notice| self.desk.jobs.receive_told(notice));
        self.was_told = told.is_some();
        let parcel = told.or_else(|| self.desk.jobs.receive())?;
        let job = parcel.job();
        self.parcels[job.index()] = Some(parcel);
        Some(job)
    }

    /// What is to run now.
    #[inline]
    fn take(&mut self, job: JobId) -> Parcel {
        let parcel = self.parcels[job.index()].take();
        parcel.expect("a policy runs what it was given, once")
    }

    /// A begun request stays here.
    fn keep(&mut self, slot: SlotId) {
        let parcel = Parcel::begun(slot);
        let job = parcel.job();
        self.parcels[job.index()] = Some(parcel);
    }

    #[inline]
    fn prefetch_next(&self, executor: &Executor<impl Service, impl Tx>) {
        if let Some(next) = self.desk.jobs.next() {
            executor.prefetch(next);
        }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.desk.jobs.is_empty()
    }

    /// Counts what is here and will not run.
    fn give_up(&mut self) -> usize {
        let own = self.own.len();
        own + std::iter::from_fn(|| self.desk.jobs.receive()).count()
    }
}

impl Backlog for View {
    fn workers(&self) -> usize {
        1
    }

    /// Of the own queue only; more than one on the link counts as one.
    #[inline]
    fn len(&self, _worker: WorkerId) -> usize {
        self.own.len() + usize::from(!self.desk.jobs.is_empty())
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
}

impl Queues for View {
    #[inline]
    fn me(&self) -> WorkerId {
        self.me
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        self.own.pop_front().or_else(|| self.receive())
    }

    fn push(&mut self, job: JobId) {
        // What came meanwhile was here before.
        while let Some(came) = self.receive() {
            self.own.push_back(came);
        }
        self.own.push_back(job);
    }

    fn try_steal(&mut self, _victim: WorkerId, _max: usize) -> Steal {
        Steal::Empty
    }

    fn pop_shared(&mut self, _queue: usize) -> Option<JobId> {
        None
    }

    fn push_shared(&mut self, _queue: usize, _job: JobId) {
        unreachable!("workers of a dispatcher share no queue")
    }

    fn set_short_ns(&mut self, _mean_ns: u64) {
        unreachable!("workers of a dispatcher tell the others nothing")
    }
}
