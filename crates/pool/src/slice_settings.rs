//! How the threads of a pool run jobs.

use std::io;
use std::sync::Arc;

use headway_fiber::Stacks;

use crate::fiber_job::OwningFiber;
use crate::rescue::JobRescue;

/// How a pool's threads run jobs.
#[derive(Clone)]
pub(crate) enum SliceSettings {
    /// On the thread's stack, to the end.
    ToTheEnd,
    /// On fibers of the thread, with these stacks.
    PlainFibers(Arc<Stacks>),
    /// On fibers that own a thread's state, with these stacks.
    OwningFibers(Arc<Stacks>, Arc<JobRescue>),
}

impl SliceSettings {
    /// Fibers with stacks of so many bytes.
    ///
    /// # Errors
    /// There are no such stacks.
    pub(crate) fn plain_fibers(stack_bytes: usize) -> io::Result<Self> {
        Ok(Self::PlainFibers(Arc::new(Stacks::new(stack_bytes, 0)?)))
    }

    /// At most so many fibers with stacks of so many bytes, each of which owns a thread's state.
    ///
    /// # Errors
    /// There are no such stacks.
    pub(crate) fn owning_fibers(stack_bytes: usize, most: usize) -> io::Result<Self> {
        let stacks = Stacks::of_donors(stack_bytes, 0)?.at_most(most);
        Ok(Self::OwningFibers(Arc::new(stacks), Arc::default()))
    }

    /// Whether jobs can be interrupted.
    pub(crate) fn interrupt(&self) -> bool {
        !matches!(self, Self::ToTheEnd)
    }

    /// Whether an interrupted job goes on in its thread only.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(self, Self::PlainFibers(_))
    }

    /// Gives back the stack of a fiber whose job ended: a dropped one would be missing for ever among those that may be in use.
    pub(crate) fn give_back(&self, on: OwningFiber) {
        if let Self::OwningFibers(stacks, _) = self {
            stacks.give(on.fiber.into_inner().into_stack());
        }
    }

    pub(crate) fn rescue(&self) -> Option<&Arc<JobRescue>> {
        match self {
            Self::OwningFibers(_, rescue) => Some(rescue),
            _ => None,
        }
    }
}
