//! The words that probes touch: version 1 of the contract with the compiler pass and with C code.
//!
//! Two thread-local objects of 64 bytes, each on a cache line of its own, and the functions that probes call. Probes find the objects by
//! `symbol@gottpoff(%rip)`, in an executable by `symbol@tpoff`; no code may keep an address in them over a call that can yield, since a
//! fiber may resume in another thread.

pub(crate) mod words;

pub use crate::slow::{
    __headway_deferred, __headway_deferred_at_end_of, __headway_deferred_in_library,
};
pub use crate::stub::{__headway_checkpoint, __headway_preempted, __headway_tick};
pub use words::{
    __headway_preempt, __headway_self, ASKED_OFFSET, COUNTDOWN, COUNTDOWN_OFFSET, CacheLine,
    DEADLINE_OFFSET, DEFERRED_OFFSET, EPOCH_OFFSET, FIBER_OFFSET, MOST_SKIPPED, NEVER,
    NO_PREEMPT_OFFSET, SELF_TIMED, VERSION,
};
