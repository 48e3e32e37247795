//! Monitors: which running request is interrupted, and when.

mod lateness;
mod quantum;
mod timer_core;

pub use lateness::Lateness;
pub use quantum::Quantum;
pub use timer_core::{Feedback, TimerCore, TimerRules};
