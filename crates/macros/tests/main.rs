//! Marked functions.

// So that the attribute finds `::headway::checkpoint` without the whole of `headway`.
extern crate headway_fiber as headway;

mod migrates;
mod yields;
