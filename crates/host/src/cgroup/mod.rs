//! A control group for each program: all processes that it ever makes are in it, whoever their parent is by now, and one write names the cores of all of
//! their threads.
//!
//! The groups have only the idle time of their cores (`cpu.idle`): a thread of any other group that wakes runs at once, also where the kernel schedules
//! sessions against each other (autogroup), which take no notice of `SCHED_IDLE` in one of them. So a core changes hands as soon as the next tenant wakes.
//! The kernel still walks over all threads of a group when its cores change. A thread of the daemon's does this, beside the arbiter.

mod confiner;
mod group;
mod hierarchy;

pub use confiner::{Confiner, GroupHandle};
pub use group::{ProgramGroup, ProgramGroups};
