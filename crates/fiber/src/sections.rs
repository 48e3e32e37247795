//! The sections and fibers that the lock needs: this crate's, or models of them under `--cfg loom`.

#[cfg(not(loom))]
mod real {
    pub(crate) use crate::local::no_preempt;
    pub(crate) use crate::no_preempt::NoPreempt;
    pub(crate) use crate::switch::in_fiber;
    pub(crate) use crate::yielding::yield_now;

    /// The number of attempts before a waiter lets others run: they take as long as several transfers of a cache line, there and back.
    pub(crate) const SPINS: u32 = 100;
}

#[cfg(loom)]
mod real {
    pub(crate) use crate::model::{NoPreempt, in_fiber, no_preempt, yield_now};

    /// A further attempt leads the model to the same state.
    pub(crate) const SPINS: u32 = 1;
}

pub(crate) use real::*;
