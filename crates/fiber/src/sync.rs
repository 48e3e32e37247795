//! What the lock is made of: the standard library's primitives and this crate's sections, or models of both under `--cfg loom`.

#[cfg(not(loom))]
mod real {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use std::thread;

    pub(crate) use crate::local::no_preempt;
    pub(crate) use crate::no_preempt::NoPreempt;
    pub(crate) use crate::switch::{in_fiber, yield_now};

    /// How often a lock is looked at before others are let run: about a cache line's way there and back, several times.
    pub(crate) const SPINS: u32 = 100;
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use loom::thread;

    pub(crate) use crate::model::{NoPreempt, in_fiber, no_preempt, yield_now};

    /// Looking again is the same again.
    pub(crate) const SPINS: u32 = 1;
}

pub(crate) use real::*;
