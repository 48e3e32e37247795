//! The pool's threads: who is parked, and whom to wake.
//!
//! A worker is a place of the policy's; a thread takes whichever worker has something to run. So a thread that wakes late delays nobody if another
//! comes first, and a thread that blocks leaves its worker to another. Where jobs run on fibers, which stay on their thread, thread `i` is worker `i`.

use headway_policy::WorkerId;
use headway_sync::thread::{self, Thread};

use crate::decisions::Decide;
use crate::idle_wait::IdleHandle;

/// What a thread's place in the table says.
#[derive(Clone, Debug)]
enum ThreadState {
    /// No thread has this place.
    Vacant,
    /// It was started, runs a job, or looks for one.
    Awake,
    /// It sleeps, or is about to.
    Parked(IdleHandle),
    /// It was woken and did not look yet.
    Woken,
}

/// See the [module](self).
pub(crate) struct ThreadTable {
    states: Vec<ThreadState>,
    /// Those who parked; the last one is the next to be woken, since its caches are warm.
    parked: Vec<usize>,
    woken: usize,
    threads: usize,
    /// Threads whose job left its worker to block: they are beside the workers until it ends.
    pub(crate) blocked: usize,
    workers: usize,
    most_blocked: usize,
    /// Whether thread `i` is worker `i`.
    pub(crate) is_bound: bool,
    /// The dispatcher's thread, where it has one and that sleeps or is about to.
    dispatcher: Option<Thread>,
}

/// What to do about threads once the lock is released.
pub(crate) enum Rouse {
    Nobody,
    Wake(IdleHandle),
    /// Start the thread of this place.
    Start(usize),
}

impl ThreadTable {
    pub(crate) fn new(workers: usize, most_blocked: usize, is_bound: bool) -> Self {
        let places = workers + most_blocked;
        Self {
            states: vec![ThreadState::Vacant; places],
            parked: Vec::with_capacity(places),
            woken: 0,
            threads: 0,
            blocked: 0,
            workers,
            most_blocked,
            is_bound,
            dispatcher: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.threads
    }

    /// The worker that a thread is, where it is one only.
    pub(crate) fn worker_of(&self, thread: usize) -> Option<WorkerId> {
        self.is_bound.then_some(WorkerId(thread as u16))
    }

    /// A place for a new thread.
    pub(crate) fn enlist(&mut self) -> Option<usize> {
        let place = self
            .states
            .iter()
            .position(|state| matches!(state, ThreadState::Vacant))?;
        self.states[place] = ThreadState::Awake;
        self.threads += 1;
        Some(place)
    }

    /// The thread is gone.
    pub(crate) fn leave(&mut self, thread: usize) {
        self.awake(thread);
        self.states[thread] = ThreadState::Vacant;
        self.threads -= 1;
    }

    /// The thread looks for work.
    #[inline]
    pub(crate) fn awake(&mut self, thread: usize) {
        match std::mem::replace(&mut self.states[thread], ThreadState::Awake) {
            ThreadState::Woken => self.woken -= 1,
            ThreadState::Parked(_) => self.parked.retain(|&parked| parked != thread),
            ThreadState::Awake | ThreadState::Vacant => {}
        }
    }

    /// The thread found nothing. `false`: there are enough without it.
    pub(crate) fn park(&mut self, thread: usize, handle: IdleHandle) -> bool {
        if self.threads - self.blocked > self.workers {
            return false;
        }
        self.states[thread] = ThreadState::Parked(handle);
        self.parked.push(thread);
        true
    }

    /// The calling thread's job leaves its worker, if one more may.
    pub(crate) fn leave_worker(&mut self) -> bool {
        let may_go = !self.is_bound && self.blocked < self.most_blocked;
        self.blocked += usize::from(may_go);
        may_go
    }

    /// A job that left its worker has ended.
    pub(crate) fn ended_blocked(&mut self) {
        self.blocked -= 1;
    }

    /// Whom to wake or start for the workers that have something to run: at most one, who does the same for the next.
    #[inline]
    pub(crate) fn rouse(&mut self, decide: &dyn Decide) -> Rouse {
        let may_start = !self.is_bound && self.threads - self.blocked < self.workers;
        // Where all are awake, which is when it is busy, the policy need not be asked.
        if self.parked.is_empty() && !may_start {
            return Rouse::Nobody;
        }
        let runnable = decide.runnable();
        if runnable <= self.woken {
            return Rouse::Nobody;
        }
        let next = if self.is_bound {
            let wanted = |&thread: &usize| decide.is_runnable(WorkerId(thread as u16));
            self.parked.iter().rposition(wanted)
        } else {
            self.parked.len().checked_sub(1)
        };
        match next {
            Some(at) => self.wake(at),
            None if may_start => self.enlist().map_or(Rouse::Nobody, Rouse::Start),
            None => Rouse::Nobody,
        }
    }

    fn wake(&mut self, at: usize) -> Rouse {
        let thread = self.parked.remove(at);
        let before = std::mem::replace(&mut self.states[thread], ThreadState::Woken);
        self.woken += 1;
        match before {
            ThreadState::Parked(handle) => Rouse::Wake(handle),
            _ => unreachable!("the list has those that are parked"),
        }
    }

    /// The dispatcher's thread, if it sleeps and has something to hear.
    #[inline]
    pub(crate) fn rouse_dispatcher(&mut self, decide: &dyn Decide) -> Option<Thread> {
        if self.dispatcher.is_some() && decide.awaits_dispatcher() {
            return self.dispatcher.take();
        }
        None
    }

    /// The calling thread is the dispatcher's, and found nothing to hear.
    pub(crate) fn park_dispatcher(&mut self) {
        self.dispatcher = Some(thread::current());
    }

    /// Wakes all who are parked.
    pub(crate) fn wake_all(&mut self) -> Vec<IdleHandle> {
        let mut handles: Vec<_> = self
            .dispatcher
            .take()
            .map(IdleHandle::Sleeps)
            .into_iter()
            .collect();
        while let Some(at) = self.parked.len().checked_sub(1) {
            if let Rouse::Wake(handle) = self.wake(at) {
                handles.push(handle);
            }
        }
        handles
    }
}
