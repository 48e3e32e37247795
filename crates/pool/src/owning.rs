//! Fibers that own a thread's state: a job finds its thread-local variables and its locks wherever it goes on.
//!
//! A suspended job is [kept for all threads](crate::rescue): whichever worker its policy chooses goes on with it.

use std::sync::{Arc, Weak};

use headway_fiber::{SendFiber, Stacks, Turn, WorkerTurns};
use headway_machine::thread::CpuClock;

use crate::blocking;
use crate::chosen::ChosenJob;
use crate::current::{self, JobDesk};
use crate::fiber_job::{FiberJob, OwningFiber};
use crate::rescue::{InterruptedFiber, JobRescue, TakenFiber};
use crate::shared::SharedPool;
use crate::turn::{SliceClock, TurnEnd, to_the_end, without_fiber};

/// More free fibers than this a thread does not keep to itself, and it makes as many when it has nothing else to do: to make one takes a thread, which waits for a core
/// where all are busy.
const IDLE_FIBERS: usize = 4;

/// A thread's fibers.
pub(crate) struct OwningFibers {
    pub(crate) slices: SliceClock,
    stacks: Arc<Stacks>,
    rescue: Arc<JobRescue>,
    turns: Arc<WorkerTurns<CpuClock>>,
    idle: Vec<OwningFiber>,
    /// None was to be had at the last try.
    are_used_up: bool,
}

impl Drop for OwningFibers {
    fn drop(&mut self) {
        self.turns.leave();
        for on in self.idle.drain(..) {
            self.stacks.give(on.fiber.into_inner().into_stack());
        }
    }
}

impl OwningFibers {
    /// For the calling thread.
    pub(crate) fn new(
        shared: &Arc<SharedPool>,
        stacks: &Arc<Stacks>,
        rescue: &Arc<JobRescue>,
    ) -> Self {
        Self {
            slices: SliceClock::new(shared).holding(),
            stacks: Arc::clone(stacks),
            rescue: Arc::clone(rescue),
            turns: rescue.join(),
            idle: Vec::new(),
            are_used_up: false,
        }
    }

    /// Makes one of the free fibers that it is to have. Returns whether it did.
    pub(crate) fn make_ready(&mut self, shared: &Arc<SharedPool>) -> bool {
        if self.idle.len() >= IDLE_FIBERS || self.are_used_up {
            return false;
        }
        let made = self.in_turn(|| self.fiber(shared));
        self.are_used_up = made.is_none();
        self.idle.extend(made);
        !self.are_used_up
    }

    pub(crate) fn run(&mut self, shared: &Arc<SharedPool>, assignment: ChosenJob) -> TurnEnd {
        self.turns.step();
        let end = self.turn(shared, assignment);
        self.turns.rest();
        end
    }

    /// See [`JobSlices::in_turn`](crate::slice::JobSlices::in_turn).
    #[inline]
    pub(crate) fn in_turn<R>(&self, call: impl FnOnce() -> R) -> R {
        self.turns.step();
        let result = call();
        self.turns.rest();
        result
    }

    fn turn(&mut self, shared: &Arc<SharedPool>, assignment: ChosenJob) -> TurnEnd {
        let job = || Arc::clone(&assignment.job);
        let Some(slice_ns) = assignment.slice_ns else {
            return to_the_end(assignment, Some(&self.turns));
        };
        if assignment.is_resumed {
            return match self.rescue.take_up(assignment.chosen.token) {
                TakenFiber::Ready(fiber) => self.slices(shared, &assignment, fiber, slice_ns, None),
                TakenFiber::EndedAtHome(fiber, ran) => {
                    self.keep(fiber);
                    TurnEnd::Ended {
                        ran,
                        job: job(),
                        keeps_worker: true,
                    }
                }
                TakenFiber::AtHome => TurnEnd::AtHome(job()),
                TakenFiber::Counted => TurnEnd::EndedAtHome(job()),
            };
        }
        match self.idle.pop().or_else(|| self.fiber(shared)) {
            Some(fiber) => {
                let begun = Some(FiberJob::new(&assignment.job));
                self.slices(shared, &assignment, fiber, slice_ns, begun)
            }
            None => without_fiber(shared, assignment, Some(&self.turns)),
        }
    }

    /// A new fiber; `None` where no thread can be had for it.
    #[cold]
    fn fiber(&self, shared: &Arc<SharedPool>) -> Option<OwningFiber> {
        let stack = self.stacks.take().ok()?;
        let desk = Arc::new(JobDesk::default());
        let own_desk = Arc::clone(&desk);
        let (number, over, pool) = (
            shared.number(),
            Arc::clone(&shared.over),
            Arc::downgrade(shared),
        );
        let mut is_ready = false;
        let body = move |job: &mut FiberJob| {
            if !is_ready {
                is_ready = true;
                current::join(number, Arc::clone(&over));
                current::sit_at(Arc::clone(&own_desk));
                blocking::join(Weak::clone(&pool));
            }
            job.run();
        };
        let fiber = SendFiber::owning_thread_state(stack, body).ok()?;
        Some(OwningFiber { fiber, desk })
    }

    /// Runs the job until it ends, or its policy interrupts it.
    fn slices(
        &mut self,
        shared: &Arc<SharedPool>,
        assignment: &ChosenJob,
        mut on: OwningFiber,
        slice_ns: u64,
        mut begun: Option<FiberJob>,
    ) -> TurnEnd {
        on.desk.set_place(Some(assignment.place(Some(&self.turns))));
        let epoch = self.slices.begin_run(assignment);
        self.slices.attached().begin_on(&on.fiber, epoch);
        self.slices.begin_slice(slice_ns);
        loop {
            let turn = match begun.take() {
                Some(job) => on.fiber.run(job, u64::from(assignment.class.0)),
                None => on.fiber.resume(),
            };
            self.slices.attached().no_slice();
            if let Turn::Finished(job) = turn {
                let keeps_worker = on.desk.set_place(None).is_some();
                if !keeps_worker {
                    self.slices.leave_slice();
                }
                self.keep(on);
                return TurnEnd::Ended {
                    ran: job.ran,
                    job: job.job,
                    keeps_worker,
                };
            }
            // A job that left its worker goes on beside the workers until it ends.
            if !on.desk.has_place() {
                self.slices.leave_slice();
                continue;
            }
            match self.slices.goes_on(shared, assignment) {
                Some(longer_ns) => self.slices.begin_slice(longer_ns),
                None => return self.suspend(assignment, on),
            }
        }
    }

    fn suspend(&self, assignment: &ChosenJob, on: OwningFiber) -> TurnEnd {
        on.desk.set_place(None);
        let suspended = InterruptedFiber {
            on,
            job: Arc::clone(&assignment.job),
            class: assignment.class,
            attained_ns: assignment.attained_ns,
        };
        self.rescue.suspend(assignment.chosen.token, suspended);
        TurnEnd::Interrupted(Arc::clone(&assignment.job))
    }

    /// The fiber is free. Jobs that go on elsewhere take their fibers along, so what one thread has too many of the others may lack.
    #[inline]
    fn keep(&mut self, on: OwningFiber) {
        if self.idle.len() < IDLE_FIBERS {
            self.idle.push(on);
        } else {
            self.stacks.give(on.fiber.into_inner().into_stack());
        }
    }
}
