//! When a worker was last known to get on.

use crate::local;

/// When the worker that runs the caller was last known to get on: a time of the caller's own, carried along with the worker's words. 0 at first.
#[inline]
#[must_use]
pub fn alive_ns() -> u64 {
    local::alive_ns()
}

/// Sets [`alive_ns`].
#[inline]
pub fn set_alive_ns(now_ns: u64) {
    local::set_alive_ns(now_ns);
}
