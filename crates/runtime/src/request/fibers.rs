//! Runs requests on fibers: begins, suspends and resumes them, here or on another worker.
//!
//! A fiber is reused from request to request; a new one is needed only when the last was interrupted (SYNERGY § 5.3). A suspended
//! request is kept under its slot's token: only the holder of the token can resume it.
#![expect(
    unsafe_code,
    reason = "an interrupted handler keeps its borrow of the buffer while the token travels"
)]

use std::mem;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;

use headway_fiber::{Attached, Held, SendFiber, Turn, WorkerTurns};
use headway_machine::Clock;
use headway_net::pool::SlotId;
use headway_policy::{ClassId, Resume, WorkerId};

use crate::queue::token::job_of;
use crate::request::assignment::next_epoch;
use crate::request::executor::Executor;
use crate::request::idle_fibers::IdleFibers;
use crate::request::lateness::{EndedLate, LatenessWatch};
use crate::request::shared_fibers::FiberContext;
use crate::request::slice::{ClockReading, Renewal, SliceLength, SliceLimits, renewal_on};
use crate::request::suspended::{FiberWork, Suspended, TakenUp, request_in};
use crate::request::turn::{NextTurn, RanSlice, RunningRequest, SliceEnd};
use crate::stats::own_time::OwnTime;
use crate::stats::stall::turned_to_request;
use crate::stats::tally::{HeldTurn, Tally};

/// One thread's fibers.
pub(crate) struct Fibers<'a> {
    context: FiberContext,
    me: WorkerId,
    idle: IdleFibers,
    clock: Clock,
    /// The assignment's number among the worker's, which the epoch consists of beside the worker's own.
    number: u64,
    me_bits: u64,
    epoch: u64,
    /// The slice converted last.
    slice: SliceLength,
    /// Whether slices are renewed on the fibers' own stacks.
    renews_in_place: bool,
    next_writes: [*const (); 2],
    attached: &'a Attached,
    lateness: LatenessWatch,
    /// What the request is on that was taken up last.
    next: NextTurn,
    /// Whether it must not be interrupted, since it has no thread's state.
    runs_to_end: bool,
    turns: Arc<WorkerTurns<OwnTime>>,
}

impl Drop for Fibers<'_> {
    fn drop(&mut self) {
        self.turns.leave();
    }
}

impl<'a> Fibers<'a> {
    /// Those of this thread.
    pub(crate) fn new(context: FiberContext, me: WorkerId, attached: &'a Attached) -> Self {
        let idle = IdleFibers::new(&context);
        let lateness = LatenessWatch::new(context.overruns.classes());
        let turns = context.rescue.join();
        attached.set_clock(context.clock.reader());
        // Without a timer, probes read the clock.
        let _ = attached.raise_by_timer(context.clock);
        attached.answer_sections(true);
        Self {
            clock: context.clock,
            context,
            me,
            idle,
            number: 0,
            // A request may go on at another worker with a late wish in its line: that must not look like one of that worker's.
            me_bits: (me.index() as u64 + 1) << WORKER_SHIFT,
            epoch: 0,
            slice: SliceLength::default(),
            renews_in_place: false,
            next_writes: [ptr::null(); 2],
            attached,
            lateness,
            next: NextTurn::Nowhere,
            runs_to_end: false,
            turns,
        }
    }

    /// The same, whose slices are renewed on the requests' own stacks: one that goes on is not switched. For a `renew` that takes little stack.
    pub(crate) fn renewing_in_place(mut self) -> Self {
        self.renews_in_place = true;
        self.attached.answer_sections(false);
        self
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> ClockReading {
        let ticks = self.clock.ticks();
        ClockReading {
            ticks,
            ns: self.clock.to_ns(ticks),
        }
    }

    /// The number of the next assignment.
    #[inline]
    pub(crate) fn next_epoch(&mut self) -> u64 {
        self.number = next_epoch(self.number);
        self.epoch = self.number | self.me_bits;
        self.epoch
    }

    /// Takes up a request for that assignment: requests to interrupt an earlier one are void from now on. Who learns of the epoch only afterwards interrupts no other. A
    /// request that nobody will ask to yield, and that has no slice, may not be interrupted: it costs no thread's state. Returns its token, and whether it has
    /// said that it is long.
    #[inline(always)]
    pub(crate) fn take_up(
        &mut self,
        slot: SlotId,
        suspended: bool,
        may_be_interrupted: bool,
    ) -> (SlotId, bool) {
        if !suspended {
            let class = self.context.pool.get(&slot).class;
            let may_be_interrupted = may_be_interrupted || self.context.sayers.contains(class);
            let Some(fiber) = self.idle.take(&self.context, may_be_interrupted) else {
                self.attached.begin(self.epoch);
                self.next = NextTurn::Nowhere;
                return (slot, false);
            };
            self.runs_to_end = self.idle.own_thread_states() && !fiber.owns_thread_state();
            if self.runs_to_end {
                // Nobody's epoch: a wish for this assignment is void.
                self.attached.begin(0);
                if may_be_interrupted {
                    self.context.rescue.count_without_thread(class.into());
                }
            } else {
                self.attached.begin_on(&fiber, self.epoch);
            }
            self.next = NextTurn::Fresh(fiber);
            return (slot, false);
        }
        self.runs_to_end = false;
        let (id, slot) = job_of(slot);
        // SAFETY: we have the token until the end of this, and the places longer.
        let (request, next) = match unsafe { self.context.suspended.take_up(id) } {
            TakenUp::Ready(request) => (request, NextTurn::Suspended),
            TakenUp::AtHome(request) => (request, NextTurn::AtHome),
            TakenUp::WasAtHome(request, turn) => (request, NextTurn::WasAtHome(turn)),
        };
        assert!(
            self.context.resume == Resume::Anywhere || request.worker == self.me,
            "a request resumes where its service allows"
        );
        self.attached.begin_on(&request.fiber, self.epoch);
        self.next = next;
        (slot, request.said_long.is_set())
    }

    /// What this thread will write to when the next request is interrupted. The addresses lie in a line that others write too, so they are
    /// set only where they changed.
    #[inline]
    pub(crate) fn next_writes(&mut self, addresses: [*const (); 2]) {
        let lines =
            addresses.map(|address| address.map_addr(|address| address & !(LINE_BYTES - 1)));
        if self.next_writes != lines {
            self.next_writes = lines;
            self.attached.set_next_writes(lines);
        }
    }

    /// The message that came with the interruption of the last request, until the next assignment begins.
    #[inline]
    pub(crate) fn granted_message(&self) -> u64 {
        self.attached.granted_message()
    }

    /// The message of another thread's request to yield that came to this assignment and that it has not met; `None` without one.
    #[inline]
    pub(crate) fn unanswered_message(&self) -> Option<u64> {
        self.attached.unanswered_message()
    }

    /// What this thread will look at when the next request is interrupted.
    #[inline]
    pub(crate) fn next_read(&self, address: *const ()) {
        self.attached.set_next_read(address);
    }

    /// Begins the request that was [taken up](Self::take_up), or goes on with it, until it ends or yields. It runs from `now` on, for `slice_ns` where it has a
    /// slice, and as much longer as its limits say.
    #[inline(always)]
    pub(crate) fn run<L: SliceLimits>(
        &mut self,
        slot: SlotId,
        now: ClockReading,
        slice_ns: Option<u64>,
        limits: &mut L,
    ) -> RanSlice {
        self.turns.step();
        let ran = self.run_taken_up(slot, now, slice_ns, limits);
        self.turns.step();
        ran
    }

    #[inline(always)]
    fn run_taken_up<L: SliceLimits>(
        &mut self,
        slot: SlotId,
        now: ClockReading,
        slice_ns: Option<u64>,
        limits: &mut L,
    ) -> RanSlice {
        turned_to_request(now.ns);
        let (id, slot) = job_of(slot);
        // SAFETY: we have the token until the end of this, and the places longer.
        let place = unsafe { self.context.suspended.place(id) };
        let mut running = RunningRequest {
            id,
            slot,
            place,
            stays_home: false,
            goes_home: false,
        };
        if let Some(slice_ns) = slice_ns.filter(|_| !self.runs_to_end) {
            let first =
                |fibers: &mut Self, running: &mut RunningRequest<'_>| fibers.first_turn(running);
            return self.run_slices(running, now, now, slice_ns, limits, first);
        }
        self.attached.no_slice();
        let Some(mut turn) = self.first_turn(&mut running) else {
            return RanSlice::no_stack(running.slot, now);
        };
        if self.runs_to_end {
            self.go_to_the_end(&mut running, &mut turn);
        }
        if !running.wants_home(&turn) && running.says_long(&turn) {
            return self.run_as_long(running, now, limits);
        }
        let over = self.now().max(now);
        self.ended(running, turn, now..over, None)
    }

    /// A request without a thread's state must not make room for another: if it left its stack, by a call or to say that it is long, it goes on at once.
    #[inline(always)]
    fn go_to_the_end(&self, running: &mut RunningRequest<'_>, turn: &mut Turn<FiberWork>) {
        while matches!(turn, Turn::Yielded) {
            if running.says_long(turn) {
                self.context.sayers.said(running.class());
            }
            *turn = running.resume();
        }
    }

    /// A request without a slice left its stack to say that it is long. It goes on, in slices if its limits say so.
    #[cold]
    fn run_as_long<L: SliceLimits>(
        &mut self,
        mut running: RunningRequest<'_>,
        since: ClockReading,
        limits: &mut L,
    ) -> RanSlice {
        let now = self.now().max(since);
        if let Some(slice_ns) = limits.said_long(now.ns, &running.job()) {
            let resume = |_: &mut Self, running: &mut RunningRequest<'_>| Some(running.resume());
            return self.run_slices(running, since, now, slice_ns, limits, resume);
        }
        // It says so once.
        let turn = running.resume();
        let over = self.now().max(now);
        self.ended(running, turn, since..over, None)
    }

    /// Runs a request, which the worker took up at `since`, in slices: the first turn, which begins `now`, and all that its limits add.
    #[inline(always)]
    fn run_slices<L: SliceLimits>(
        &mut self,
        mut running: RunningRequest<'_>,
        since: ClockReading,
        now: ClockReading,
        slice_ns: u64,
        limits: &mut L,
        first: impl FnOnce(&mut Self, &mut RunningRequest<'_>) -> Option<Turn<FiberWork>>,
    ) -> RanSlice {
        self.slice.begin(self.clock, self.attached, now, slice_ns);
        let mut renewal = Renewal {
            due_ns: now.ns.saturating_add(slice_ns),
            limits,
            start: now,
            slice: self.slice,
            clock: self.clock,
            attached: self.attached,
            refused_at: None,
        };
        let renewal = &raw mut renewal;
        if self.renews_in_place {
            // SAFETY: `renewal` lives until this is taken back below, and only this and the function use it, one at a time.
            unsafe { renewal_on(self.attached, renewal) };
        }
        let first = first(self, &mut running);
        let over = first.map(|mut turn| {
            loop {
                let is_over = matches!(turn, Turn::Finished(_)) || running.stays_home;
                if is_over || running.wants_home(&turn) {
                    break (turn, self.now().max(now));
                }
                // SAFETY: the fiber does not run, so nobody else uses it.
                let renewal = unsafe { &mut *renewal };
                if running.says_long(&turn) {
                    renewal.said_long(&running.job());
                    turn = running.resume();
                    continue;
                }
                if running.asks() {
                    renewal.refused_at = renewal.refuses(self.clock.ticks(), false);
                    turn = running.answer(renewal.refused_at.is_none());
                    continue;
                }
                let asked = self.attached.granted_message() != 0;
                let refused_at = renewal.refused_at;
                let over = refused_at.or_else(|| renewal.refuses(self.clock.ticks(), asked));
                if let Some(over) = over {
                    break (turn, over);
                }
                turn = running.go_on();
            }
        });
        if self.renews_in_place {
            // SAFETY: without a function the argument is not used.
            unsafe { self.attached.set_renewal(None, ptr::null_mut()) };
        }
        // SAFETY: as above, and the last use.
        let Renewal { due_ns, slice, .. } = unsafe { &*renewal };
        self.slice = *slice;
        match over {
            Some((turn, over)) => self.ended(running, turn, since..over, Some(*due_ns)),
            None => RanSlice::no_stack(running.slot, now),
        }
    }

    /// Begins the request or resumes it, until it ends or yields. `None`: there is no stack for it.
    #[inline(always)]
    fn first_turn(&mut self, running: &mut RunningRequest<'_>) -> Option<Turn<FiberWork>> {
        match mem::replace(&mut self.next, NextTurn::Nowhere) {
            NextTurn::Fresh(fiber) => Some(self.begin(fiber, &mut running.slot, running.place)),
            NextTurn::Suspended => Some(running.resume()),
            NextTurn::Nowhere => None,
            NextTurn::WasAtHome(turn) => Some(turn),
            NextTurn::AtHome => {
                // Its thread needs a core.
                thread::yield_now();
                running.stays_home = true;
                Some(Turn::Yielded)
            }
        }
    }

    /// The request finished or yielded, after its slice if it had one, which was over at `due_ns`.
    #[inline(always)]
    fn ended(
        &mut self,
        running: RunningRequest<'_>,
        turn: Turn<FiberWork>,
        span: Range<ClockReading>,
        due_ns: Option<u64>,
    ) -> RanSlice {
        let request = request_in(running.place.as_mut());
        if running.stays_home {
            return self.waits_for_home(running, span);
        }
        request.attained_ns += span.end.ns - span.start.ns;
        request.said_long = request.fiber.said_long().into();
        let held = request.fiber.take_held();
        let held = held.map(|held| self.held_turn(held, span.end));
        let end = match turn {
            Turn::Yielded if running.goes_home => {
                let job = request.job(running.id);
                self.context.suspended.go_home(running.id, request);
                SliceEnd::AtHome { job }
            }
            Turn::Yielded => {
                let job = request.job(running.id);
                request.stopped_ns = span.end.ns;
                if request.owns_thread_state.is_set() {
                    self.context.suspended.may_go_home(running.id);
                    self.context.rescue.watch();
                }
                SliceEnd::Yielded {
                    job,
                    sliced: due_ns.is_some(),
                }
            }
            Turn::Finished(work) => {
                if request.said_long.is_set() {
                    self.context.sayers.said(request.class);
                } else if self.context.sayers.contains(request.class) {
                    self.context.sayers.said_nothing(request.class);
                }
                let late_ns = due_ns.map_or(0, |due_ns| span.end.ns.saturating_sub(due_ns));
                self.finish(&work, running.place, late_ns)
            }
        };
        RanSlice {
            slot: running.slot,
            end,
            span,
            held,
        }
    }

    /// The request is at home still: as if it had yielded at once.
    #[cold]
    fn waits_for_home(&self, running: RunningRequest<'_>, span: Range<ClockReading>) -> RanSlice {
        self.context.rescue.wanted_here();
        let job = request_in(running.place.as_mut()).job(running.id);
        RanSlice {
            slot: running.slot,
            end: SliceEnd::AtHome { job },
            span,
            held: None,
        }
    }

    #[inline(always)]
    fn begin(
        &self,
        fiber: SendFiber<FiberWork>,
        slot: &mut SlotId,
        place: &mut Option<Suspended>,
    ) -> Turn<FiberWork> {
        let buffer = self.context.pool.get_mut(slot);
        let (class, arrived_ns) = (buffer.class, buffer.arrived_ns);
        let work = FiberWork {
            buffer: NonNull::from(buffer),
            worker: self.me,
            response: None,
        };
        let request = place.insert(Suspended {
            owns_thread_state: fiber.owns_thread_state().into(),
            fiber,
            stopped_ns: 0,
            worker: self.me,
            class,
            arrived_ns,
            attained_ns: 0,
            said_long: false.into(),
        });
        request.fiber.run(work, u64::from(class))
    }

    #[inline(always)]
    fn finish(
        &mut self,
        work: &FiberWork,
        place: &mut Option<Suspended>,
        late_ns: u64,
    ) -> SliceEnd {
        let request = place.take();
        let Suspended {
            fiber, attained_ns, ..
        } = request.expect("a request that runs has its place");
        self.idle.keep(fiber);
        SliceEnd::Finished {
            response: work
                .response
                .expect("a handler that returns leaves a response"),
            cpu_ns: attained_ns,
            late_ns,
        }
    }

    #[cold]
    fn held_turn(&self, held: Held, over: ClockReading) -> HeldTurn {
        let ticks = over.ticks.saturating_sub(held.since_tsc);
        HeldTurn {
            section: held.section,
            ns: self.clock.to_ns(over.ticks) - self.clock.to_ns(over.ticks - ticks),
        }
    }

    /// Counts a request that was interrupted, in this thread's tally.
    #[inline]
    pub(crate) fn count_yield(tally: &Tally, class: ClassId, sliced: bool) {
        let class = tally.class(class.0);
        class.preemptions.add(1);
        class.preemptions_asked.add(u64::from(sliced));
    }

    /// Counts a request that ended late.
    #[inline]
    pub(crate) fn count_late(&mut self, tally: &Tally, ended: &EndedLate) {
        self.lateness.count(&self.context.overruns, tally, ended);
    }

    /// The thread's own time, ns, before it runs a request of a class under suspicion; the class is no longer under it. `None` for all others,
    /// whose runs cost no more than a look.
    #[inline]
    pub(crate) fn own_time_of_suspect(
        &mut self,
        executor: &Executor,
        slot: &SlotId,
    ) -> Option<u64> {
        if !self.lateness.suspects() {
            return None;
        }
        self.lateness.acquit(ClassId(executor.describe(slot).0))
    }

    /// The thread's own time since it was `before_ns`.
    pub(crate) fn own_time_since(&self, before_ns: u64) -> Option<u64> {
        self.lateness.own_time_since(before_ns)
    }
}

/// Where an epoch's worker begins.
const WORKER_SHIFT: u32 = 48;

/// A cache line.
const LINE_BYTES: usize = 64;
