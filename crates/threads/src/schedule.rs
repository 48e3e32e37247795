//! Scheduling points: becoming ready, and yielding.

use std::thread;

use headway_fiber::NoPreempt;

use crate::head::Uthread;
use crate::suspending::{Suspending, ready_in_section};

/// Makes a thread ready. The thread waits or is about to, and the caller is the only one that makes it ready.
#[inline]
pub(crate) fn ready(thread: Uthread) {
    let _section = NoPreempt::enter();
    ready_in_section(thread);
}

/// Lets the other threads that are ready run first. Outside of a runtime's threads, lets the operating system run another thread.
#[inline]
pub fn yield_now() {
    match Suspending::begin() {
        Some(suspending) => suspending.yields(),
        None => thread::yield_now(),
    }
}
