//! Runs requests on fibers: begins, suspends and resumes them, here or on another worker.
//!
//! A fiber is reused from request to request; a new one is needed only when the last was interrupted (SYNERGY § 5.3). A suspended
//! request is kept under its slot's token: only the holder of the token can resume it.
#![expect(
    unsafe_code,
    reason = "an interrupted handler keeps its borrow of the buffer while the token travels"
)]

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use headway_fiber::{Attached, Fiber, Held, Mechanism, Stack, StackCache, Stacks, Turn};
use headway_machine::Clock;
use headway_net::pool::{SlotId, SlotPool};
use headway_policy::{ClassId, Job, JobId, Resume, WorkerId};

use crate::queue::token::job_of;
use crate::request::assignment::next_epoch;
use crate::request::executor::Executor;
use crate::request::executor::handle;
use crate::request::service::{CallMode, Response, Service};
use crate::request::slice::{ClockReading, Renewal, SliceLength, SliceLimits, renewal_on};
use crate::request::suspended::{FiberWork, Suspended, SuspendedRequests, request_in};
use crate::stats::overruns::{ENDLESS_NS, Overruns, PROMPT_NS};
use crate::stats::own_time::OwnTime;
use crate::stats::stall::turned_to_request;
use crate::stats::tally::{HeldTurn, Tally};

/// How a slice of service ended.
pub(crate) enum SliceEnd {
    /// The handler returned.
    Finished {
        response: Response,
        /// How long the handler ran in all, ns.
        cpu_ns: u64,
        /// For how long its slice had been over, ns.
        late_ns: u64,
    },
    /// Interrupted.
    Yielded {
        /// The request as policies see it.
        job: Job,
        /// Whether it had a slice, which is over.
        sliced: bool,
    },
    /// The request did not begin: no stack was left.
    NoStack,
}

/// A slice of service that is over.
pub(crate) struct RanSlice {
    pub(crate) slot: SlotId,
    pub(crate) end: SliceEnd,
    /// From when to when the request ran.
    pub(crate) span: Range<ClockReading>,
    /// Why it did not end when it was to, if a section kept it.
    pub(crate) held: Option<HeldTurn>,
}

impl RanSlice {
    /// There was no stack for a request that was to begin now.
    #[cold]
    fn no_stack(slot: SlotId, now: ClockReading) -> Self {
        Self {
            slot,
            end: SliceEnd::NoStack,
            span: now..now,
            held: None,
        }
    }
}

/// A request that a worker runs: its token, and its place.
struct RunningRequest<'p> {
    id: JobId,
    slot: SlotId,
    place: &'p mut Option<Suspended>,
}

impl RunningRequest<'_> {
    /// Its slice was renewed. What kept it from ending kept nobody waiting.
    #[inline(always)]
    fn go_on(&mut self) -> Turn<FiberWork> {
        let fiber = &mut request_in(self.place.as_mut()).fiber;
        fiber.take_held();
        fiber.resume()
    }

    /// Whether this turn ended only so that the request could say that it is long.
    #[inline(always)]
    fn says_long(&mut self, turn: &Turn<FiberWork>) -> bool {
        matches!(turn, Turn::Yielded) && request_in(self.place.as_mut()).fiber.take_saying()
    }

    /// It has been heard.
    fn resume(&mut self) -> Turn<FiberWork> {
        request_in(self.place.as_mut()).fiber.resume()
    }

    /// The request as policies see it.
    fn job(&mut self) -> Job {
        request_in(self.place.as_mut()).job(self.id)
    }
}

/// What the fibers of all threads share.
pub(crate) struct FiberContext {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) suspended: Arc<SuspendedRequests>,
    pub(crate) pool: Arc<SlotPool>,
    pub(crate) resume: Resume,
    /// By what the dispatcher interrupts.
    pub(crate) mechanism: Mechanism,
    /// Whether requests are interrupted only where they say that they are long.
    pub(crate) feedback: bool,
    /// Whether who limits a request's slices goes by its saying that it is long.
    pub(crate) heeds_length: bool,
    /// What becomes of requests that do not yield.
    pub(crate) overruns: Arc<Overruns>,
    pub(crate) clock: Clock,
}

impl Clone for FiberContext {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            stacks: Arc::clone(&self.stacks),
            suspended: Arc::clone(&self.suspended),
            pool: Arc::clone(&self.pool),
            resume: self.resume,
            mechanism: self.mechanism,
            feedback: self.feedback,
            heeds_length: self.heeds_length,
            overruns: Arc::clone(&self.overruns),
            clock: self.clock,
        }
    }
}

/// One thread's fibers.
pub(crate) struct Fibers<'a> {
    context: FiberContext,
    me: WorkerId,
    /// Fibers between two requests, the one used last at the end.
    idle: Vec<Fiber<FiberWork>>,
    stacks: StackCache,
    clock: Clock,
    epoch: u64,
    /// The slice converted last.
    slice: SliceLength,
    /// Whether slices are renewed on the fibers' own stacks.
    renews_in_place: bool,
    next_writes: [*const (); 2],
    attached: &'a Attached,
    /// The time that this thread has had a core.
    own_time: OwnTime,
    /// Classes of which a request was late: the next one's own time is measured.
    suspects: Vec<ClassId>,
}

/// A request that ended after it was to yield.
pub(crate) struct EndedLate {
    pub(crate) class: ClassId,
    /// For how long it was to have yielded, ns.
    pub(crate) late_ns: u64,
    /// Whether another thread asked it to, and counted that; else its slice was over.
    pub(crate) was_asked: bool,
    /// How long this run took, ns.
    pub(crate) ran_ns: u64,
    /// For how much of this run its thread had a core, ns; `None` where that was not measured.
    pub(crate) own_ns: Option<u64>,
}

impl EndedLate {
    /// For how long its thread ran on, ns: without the time that others took from it. `None` where that was not measured.
    fn overran_ns(&self) -> Option<u64> {
        let taken_ns = self.ran_ns.saturating_sub(self.own_ns?);
        Some(self.late_ns.saturating_sub(taken_ns))
    }
}

impl<'a> Fibers<'a> {
    /// Those of this thread.
    pub(crate) fn new(context: FiberContext, me: WorkerId, attached: &'a Attached) -> Self {
        let idle = Vec::with_capacity(MOST_IDLE);
        let suspects = Vec::with_capacity(context.overruns.classes());
        attached.set_clock(context.clock.reader());
        // Without a timer, probes read the clock.
        let _ = attached.raise_by_timer(context.clock);
        Self {
            stacks: StackCache::new(Arc::clone(&context.stacks)),
            clock: context.clock,
            context,
            me,
            idle,
            epoch: 0,
            slice: SliceLength::default(),
            renews_in_place: false,
            next_writes: [ptr::null(); 2],
            attached,
            own_time: OwnTime::of_current(),
            suspects,
        }
    }

    /// The same, whose slices are renewed on the requests' own stacks: one that goes on is not switched. For a `renew` that takes little stack.
    pub(crate) fn renewing_in_place(mut self) -> Self {
        self.renews_in_place = true;
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

    /// Numbers the next assignment: requests to interrupt an earlier one are void from now on.
    #[inline]
    pub(crate) fn next_epoch(&mut self) -> u64 {
        self.epoch = next_epoch(self.epoch);
        self.attached.begin(self.epoch);
        self.epoch
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

    /// Whether this request, which was interrupted, has said that it is long.
    #[inline]
    pub(crate) fn said_long(&self, id: JobId, _token: &SlotId) -> bool {
        // SAFETY: the caller has the request's token for as long as this.
        let place = unsafe { self.context.suspended.place(id) };
        place
            .as_ref()
            .is_some_and(|request| request.fiber.said_long())
    }

    /// Begins the request, or resumes it where it is `suspended`, until it ends or yields. It runs from `now` on, for `slice_ns` where it has a
    /// slice, and as much longer as its limits say.
    #[inline(always)]
    pub(crate) fn run<L: SliceLimits>(
        &mut self,
        slot: SlotId,
        suspended: bool,
        now: ClockReading,
        slice_ns: Option<u64>,
        limits: &mut L,
    ) -> RanSlice {
        turned_to_request(now.ns);
        let (id, slot) = job_of(slot);
        // SAFETY: we have the token until the end of this, and the places longer.
        let place = unsafe { self.context.suspended.place(id) };
        let mut running = RunningRequest { id, slot, place };
        if let Some(slice_ns) = slice_ns {
            let first = |fibers: &mut Self, running: &mut RunningRequest<'_>| {
                fibers.first_turn(running, suspended)
            };
            return self.run_slices(running, now, now, slice_ns, limits, first);
        }
        self.attached.no_slice();
        let Some(turn) = self.first_turn(&mut running, suspended) else {
            return RanSlice::no_stack(running.slot, now);
        };
        if running.says_long(&turn) {
            return self.run_as_long(running, now, limits);
        }
        let over = self.now().max(now);
        self.ended(running, turn, now..over, None)
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
                if matches!(turn, Turn::Finished(_)) {
                    break (turn, self.now().max(now));
                }
                // SAFETY: the fiber does not run, so nobody else uses it.
                let renewal = unsafe { &mut *renewal };
                if running.says_long(&turn) {
                    renewal.said_long(&running.job());
                    turn = running.resume();
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
    fn first_turn(
        &mut self,
        running: &mut RunningRequest<'_>,
        suspended: bool,
    ) -> Option<Turn<FiberWork>> {
        if suspended {
            return Some(self.resume(running.place.as_mut()));
        }
        let fiber = self.idle.pop().or_else(|| self.spawn())?;
        Some(self.begin(fiber, &mut running.slot, running.place))
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
        request.attained_ns += span.end.ns - span.start.ns;
        let held = request.fiber.take_held();
        let held = held.map(|held| self.held_turn(held, span.end));
        let end = match turn {
            Turn::Yielded => SliceEnd::Yielded {
                job: request.job(running.id),
                sliced: due_ns.is_some(),
            },
            Turn::Finished(work) => {
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

    #[inline(always)]
    fn begin(
        &self,
        fiber: Fiber<FiberWork>,
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
            // SAFETY: with `Resume::OwnWorker` it is resumed by this thread only (`resume` sees to it), and by its loop, which ends before the
            // thread's variables are dropped; else who built the server has promised that its handlers may go on anywhere
            // (`Builder::resume_anywhere`).
            fiber: unsafe { fiber.migratable() },
            worker: self.me,
            class,
            arrived_ns,
            attained_ns: 0,
        });
        request.fiber.run(work, u64::from(class))
    }

    #[inline(always)]
    fn resume(&self, place: Option<&mut Suspended>) -> Turn<FiberWork> {
        let request = request_in(place);
        assert!(
            self.context.resume == Resume::Anywhere || request.worker == self.me,
            "a request resumes where its service allows"
        );
        request.fiber.resume()
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
        self.keep(fiber.into_inner());
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

    /// Counts a request that ended late, if its own thread was what made it late. Nothing is known of that for the first late request of its
    /// class, which puts the class under suspicion.
    #[inline]
    pub(crate) fn count_late(&mut self, tally: &Tally, ended: &EndedLate) {
        if !ended.was_asked {
            tally.class(ended.class.0).preemptions_asked.add(1);
        }
        if ended.late_ns > PROMPT_NS {
            self.judge(tally, ended);
        }
    }

    #[cold]
    fn judge(&mut self, tally: &Tally, ended: &EndedLate) {
        let EndedLate {
            class, was_asked, ..
        } = *ended;
        let is_guilty = match ended.overran_ns() {
            // Whoever asked watches the thread, and counted that.
            Some(overran_ns) if was_asked && overran_ns > ENDLESS_NS => true,
            Some(overran_ns) => self.context.overruns.ended(tally, class.0, overran_ns),
            None => true,
        };
        let is_known =
            self.suspects.contains(&class) || self.suspects.len() == self.suspects.capacity();
        if is_guilty && !is_known {
            self.suspects.push(class);
        }
    }

    /// The thread's own time, ns, before it runs a request of a class under suspicion; the class is no longer under it. `None` for all others,
    /// whose runs cost no more than a look.
    #[inline]
    pub(crate) fn own_time_of_suspect(
        &mut self,
        executor: &Executor,
        slot: &SlotId,
    ) -> Option<u64> {
        if self.suspects.is_empty() {
            return None;
        }
        self.acquit(ClassId(executor.describe(slot).0))
    }

    #[cold]
    fn acquit(&mut self, class: ClassId) -> Option<u64> {
        let place = self.suspects.iter().position(|suspect| *suspect == class)?;
        self.suspects.swap_remove(place);
        self.own_time.read_ns()
    }

    /// The thread's own time since it was `before_ns`.
    #[cold]
    pub(crate) fn own_time_since(&self, before_ns: u64) -> Option<u64> {
        let now_ns = self.own_time.read_ns()?;
        Some(now_ns.saturating_sub(before_ns))
    }

    /// The fiber is free. Requests that go on elsewhere take their fibers along, so what one thread has too many of the others may lack.
    #[inline]
    fn keep(&mut self, fiber: Fiber<FiberWork>) {
        if self.idle.len() < MOST_IDLE {
            self.idle.push(fiber);
        } else {
            self.stacks.give(fiber.into_stack());
        }
    }

    #[cold]
    fn spawn(&mut self) -> Option<Fiber<FiberWork>> {
        let stack: Stack = self.stacks.take().ok()?;
        let service = Arc::clone(&self.context.service);
        let context = &self.context;
        let stays = context.resume == Resume::OwnWorker && context.mechanism != Mechanism::Signal;
        let mode = CallMode {
            heard: context.feedback,
            says_long: context.heeds_length,
            may_be_held: stays && !context.feedback,
        };
        Some(Fiber::new(stack, move |work: &mut FiberWork| {
            // SAFETY: whoever handed the buffer over has its token and leaves the buffer alone until the fiber has finished.
            let buffer = unsafe { work.buffer.as_mut() };
            work.response = Some(handle(&*service, buffer, work.worker, mode));
        }))
    }
}

/// A cache line.
const LINE_BYTES: usize = 64;

/// More free fibers than this a thread does not keep to itself.
pub(crate) const MOST_IDLE: usize = 64;
