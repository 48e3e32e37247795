//! What the server's owner tells its threads, and what they tell back.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use headway_policy::Plan;

use crate::sync::Padded;

/// The stages of a server's life, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Takes and answers requests.
    Running,
    /// Answers what it accepted, refuses the rest.
    Draining,
    /// Gives up what it has not begun.
    Abandoning,
    /// Nothing is left to do.
    Stopped,
}

impl Phase {
    const ALL: [Self; 4] = [
        Self::Running,
        Self::Draining,
        Self::Abandoning,
        Self::Stopped,
    ];
}

/// Read in every turn of every loop, hardly ever written: a line of its own that stays in all caches.
#[derive(Debug)]
pub(crate) struct Control {
    phase: Padded<AtomicU8>,
    workers: AtomicUsize,
    plan: Padded<Mutex<(u64, Option<Plan>)>>,
}

impl Control {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            phase: Padded(AtomicU8::new(Phase::Running as u8)),
            workers: AtomicUsize::new(workers),
            plan: Padded(Mutex::new((0, None))),
        }
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire))]
    }

    /// Goes on to a later phase; never back.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }

    /// How many workers the dispatcher may use.
    #[inline]
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_workers(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    /// Called by the dispatcher when the policy has a new plan: rarely, so it may lock and allocate.
    #[cold]
    pub(crate) fn publish_plan(&self, revisions: u64, plan: Option<&Plan>) {
        let mut published = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        *published = (revisions, plan.cloned());
    }

    pub(crate) fn plan(&self) -> (u64, Option<Plan>) {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
