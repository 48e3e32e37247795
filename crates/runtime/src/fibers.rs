//! Requests on fibers: begun, interrupted, gone on with, here or elsewhere.
//!
//! A fiber is reused from request to request; a new one is needed only when the last was interrupted (SYNERGY § 5.3). What was begun is
//! kept by the request's token: whoever holds that may go on with it, and nobody else can.
#![expect(
    unsafe_code,
    reason = "an interrupted handler keeps its borrow of the buffer while the token travels"
)]

use std::cell::UnsafeCell;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use headway_fiber::{Attached, Fiber, SendFiber, Stack, Stacks, Turn};
use headway_machine::Clock;
use headway_net::pool::{Pool, SlotId};
use headway_net::slot::Slot;
use headway_policy::{ClassId, Job, JobId, Resume, WorkerId};

use crate::executor::{Outcome, handle};
use crate::heed::Heed;
use crate::pulse::next_epoch;
use crate::service::Service;
use crate::stall::turned_to_request;
use crate::tally::Tally;
use crate::token::job_of;

/// What a fiber is handed: the buffer, and where it puts what came of it.
struct Work {
    slot: NonNull<Slot>,
    worker: WorkerId,
    outcome: Option<Outcome>,
}

// SAFETY: the buffer goes with its token, which is sent along.
unsafe impl Send for Work {}

/// A request that was begun and is not finished.
pub(crate) struct Begun {
    fiber: SendFiber<Work>,
    /// Who began it.
    worker: WorkerId,
    class: u16,
    arrived_ns: u64,
    attained_ns: u64,
}

impl Begun {
    /// The request as policies see it.
    #[inline]
    fn job(&self, id: JobId) -> Job {
        Job {
            attained_ns: self.attained_ns,
            ..Job::new(id, ClassId(self.class), self.arrived_ns)
        }
    }
}

/// Where begun requests are, while they run and while they wait: a place a slot. None is moved when it is interrupted.
pub(crate) struct Shelf {
    places: Box<[UnsafeCell<Option<Begun>>]>,
}

// SAFETY: a place is reached only with a mutable borrow of its slot's token, of which there is one; tokens cross threads by
// rings that synchronise (see `Pool`, whose slots are shared the same way). What lies there may be sent: it is a `SendFiber`.
unsafe impl Sync for Shelf {}
// SAFETY: as above; nothing here belongs to the thread that made it.
unsafe impl Send for Shelf {}

impl Shelf {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            places: (0..slots).map(|_| UnsafeCell::new(None)).collect(),
        }
    }

    /// The place of this request.
    ///
    /// # Safety
    /// The caller has the request's token, which is unique (see `Sync`), and keeps it and the shelf for longer than this.
    #[inline]
    unsafe fn place<'a>(&self, job: JobId) -> &'a mut Option<Begun> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.places[job.index()].get() }
    }
}

impl Drop for Shelf {
    /// Handlers of requests that were given up never go on: their frames may be another language's, or hold what belongs to
    /// another thread, so they are left as they are.
    fn drop(&mut self) {
        for place in &mut self.places {
            if let Some(begun) = place.get_mut().take() {
                // A suspended fiber leaves its stack behind.
                drop(begun);
            }
        }
    }
}

/// How a stretch of service ended.
pub(crate) enum Stretch {
    /// With the handler's return, after so much service in all, ns.
    Finished {
        outcome: Outcome,
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
    /// It was not begun, for want of a stack.
    NoStack,
}

/// One reading of the clock: slices are counted in ticks, all else in ns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reading {
    ticks: u64,
    pub(crate) ns: u64,
}

/// What is common to the fibers of all threads.
pub(crate) struct Weft<S> {
    pub(crate) service: Arc<S>,
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) resume: Resume,
    /// Whether requests are interrupted only where they say that they are long.
    pub(crate) feedback: bool,
    /// What becomes of requests that do not yield.
    pub(crate) heed: Arc<Heed>,
}

impl<S> Clone for Weft<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            stacks: Arc::clone(&self.stacks),
            shelf: Arc::clone(&self.shelf),
            pool: Arc::clone(&self.pool),
            resume: self.resume,
            feedback: self.feedback,
            heed: Arc::clone(&self.heed),
        }
    }
}

/// One thread's fibers.
pub(crate) struct Fibers<'a, S> {
    weft: Weft<S>,
    me: WorkerId,
    /// Fibers between two requests, the one used last at the end.
    idle: Vec<Fiber<Work>>,
    clock: Clock,
    epoch: u64,
    /// A slice in ns and in ticks.
    slice: (u64, u64),
    next_writes: [*const (); 2],
    attached: &'a Attached,
}

impl<'a, S: Service> Fibers<'a, S> {
    /// Those of this thread.
    pub(crate) fn new(weft: Weft<S>, me: WorkerId, attached: &'a Attached) -> Self {
        let idle = Vec::with_capacity(MOST_IDLE);
        Self {
            weft,
            me,
            idle,
            clock: Clock::global(),
            epoch: 0,
            slice: (0, 0),
            next_writes: [ptr::null(); 2],
            attached,
        }
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Reading {
        let ticks = self.clock.ticks();
        Reading {
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

    /// What the last request was told that was interrupted, until the next begins.
    #[inline]
    pub(crate) fn told(&self) -> u64 {
        self.attached.told()
    }

    /// What this thread will look at when the next request is interrupted.
    #[inline]
    pub(crate) fn next_read(&self, address: *const ()) {
        self.attached.set_next_read(address);
    }

    /// Runs the request, or goes on with it, until it ends or is interrupted; when its slice is over, `renew` may give it another.
    /// Returns from when, which is `now`, to when it ran.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        (token, begun): (SlotId, bool),
        now: Reading,
        mut slice_ns: Option<u64>,
        mut renew: impl FnMut(u64) -> Option<u64>,
    ) -> (SlotId, Stretch, Range<Reading>) {
        let start = now;
        let sliced = slice_ns.is_some();
        let mut due_ns = start.ns.saturating_add(slice_ns.unwrap_or(u64::MAX));
        turned_to_request(start.ns);
        if let Some(slice_ns) = slice_ns {
            self.end_slice_in(now.ticks, slice_ns);
        }
        let (id, mut token) = job_of(token);
        // SAFETY: we have the token until the end of this, and the shelf longer.
        let place = unsafe { self.weft.shelf.place(id) };
        let mut turn = match begun {
            true => self.go_on(place.as_mut()),
            false => match self.idle.pop().or_else(|| self.spawn()) {
                Some(fiber) => self.begin(fiber, &mut token, place),
                None => return (token, Stretch::NoStack, start..start),
            },
        };
        let end = loop {
            let now = self.now().max(start);
            if matches!(turn, Turn::Finished(_)) || slice_ns.is_none() {
                break now;
            }
            slice_ns = renew(now.ns);
            let Some(slice_ns) = slice_ns else {
                break now;
            };
            due_ns = now.ns.saturating_add(slice_ns);
            self.end_slice_in(now.ticks, slice_ns);
            turn = there(place.as_mut()).fiber.resume();
        };
        there(place.as_mut()).attained_ns += end.ns - start.ns;
        let stretch = match turn {
            Turn::Yielded => Stretch::Yielded {
                job: there(place.as_mut()).job(id),
                sliced,
            },
            Turn::Finished(work) => self.finish(&work, place, end.ns.saturating_sub(due_ns)),
        };
        (token, stretch, start..end)
    }

    #[inline(always)]
    fn begin(
        &self,
        fiber: Fiber<Work>,
        token: &mut SlotId,
        place: &mut Option<Begun>,
    ) -> Turn<Work> {
        let slot = self.weft.pool.get_mut(token);
        let (class, arrived_ns) = (slot.class, slot.arrived_ns);
        let work = Work {
            slot: NonNull::from(slot),
            worker: self.me,
            outcome: None,
        };
        let begun = place.insert(Begun {
            // SAFETY: with `Resume::OwnWorker` it is resumed by this thread only (`go_on` sees to it), and by its loop, which ends before the
            // thread's variables are dropped; else who built the server has promised that its handlers may go on anywhere
            // (`Builder::resume_anywhere`).
            fiber: unsafe { fiber.migratable() },
            worker: self.me,
            class,
            arrived_ns,
            attained_ns: 0,
        });
        begun.fiber.run(work, u64::from(class))
    }

    #[inline(always)]
    fn go_on(&self, begun: Option<&mut Begun>) -> Turn<Work> {
        let begun = there(begun);
        assert!(
            self.weft.resume == Resume::Anywhere || begun.worker == self.me,
            "a request goes on where its service allows"
        );
        begun.fiber.resume()
    }

    #[inline(always)]
    fn finish(&mut self, work: &Work, place: &mut Option<Begun>, late_ns: u64) -> Stretch {
        let begun = place.take();
        let Begun {
            fiber, attained_ns, ..
        } = begun.expect("what runs is on the shelf");
        self.keep(fiber.into_inner());
        Stretch::Finished {
            outcome: work
                .outcome
                .expect("a handler that returns leaves an outcome"),
            cpu_ns: attained_ns,
            late_ns,
        }
    }

    /// Counts a request that was interrupted, in this thread's tally.
    #[inline]
    pub(crate) fn count_yield(tally: &Tally, class: ClassId, sliced: bool) {
        let class = tally.class(class.0);
        class.preemptions.add(1);
        class.preemptions_asked.add(u64::from(sliced));
    }

    /// Counts a request that ended when its slice had been over for `late_ns`.
    #[inline]
    pub(crate) fn count_late(&self, tally: &Tally, class: ClassId, late_ns: u64) {
        if late_ns > 0 {
            tally.class(class.0).preemptions_asked.add(1);
            self.weft.heed.ended(tally, class.0, late_ns);
        }
    }

    /// The fiber is free. Requests that go on elsewhere take their fibers along, so what one thread has too many of the others may lack.
    #[inline]
    fn keep(&mut self, fiber: Fiber<Work>) {
        if self.idle.len() < MOST_IDLE {
            self.idle.push(fiber);
        } else {
            self.weft.stacks.give(fiber.into_stack());
        }
    }

    #[cold]
    fn spawn(&self) -> Option<Fiber<Work>> {
        let stack: Stack = self.weft.stacks.take().ok()?;
        let service = Arc::clone(&self.weft.service);
        let heard = self.weft.feedback;
        Some(Fiber::new(stack, move |work: &mut Work| {
            // SAFETY: whoever handed the buffer over has its token and leaves the buffer alone until the fiber has finished.
            let slot = unsafe { work.slot.as_mut() };
            work.outcome = Some(handle(&*service, slot, work.worker, heard));
        }))
    }

    #[inline]
    fn end_slice_in(&mut self, now_ticks: u64, slice_ns: u64) {
        // Slices are mostly alike, and a conversion is a division.
        if self.slice.0 != slice_ns {
            self.slice = (slice_ns, self.clock.ticks_in(slice_ns));
        }
        self.attached
            .set_deadline(now_ticks.saturating_add(self.slice.1));
    }
}

/// A cache line.
const LINE_BYTES: usize = 64;

/// More free fibers than this a thread does not keep to itself.
const MOST_IDLE: usize = 64;

/// What was begun and is not finished is on the shelf.
#[inline(always)]
fn there(begun: Option<&mut Begun>) -> &mut Begun {
    begun.expect("what was begun is kept with its token")
}
