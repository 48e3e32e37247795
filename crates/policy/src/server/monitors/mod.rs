//! Monitors: which running request is interrupted, and when.

mod any;
mod lateness;
mod outranked;
mod overtake;
mod quantum;
mod ticks;
mod timer_core;

pub use any::AnyMonitor;
pub use lateness::Lateness;
pub use outranked::Outranked;
pub use overtake::{Overtake, Urgency};
pub use quantum::Quantum;
pub use ticks::Ticks;
pub use timer_core::{LEAST_DYNAMIC_QUANTUM_NS, MOST_WAIT_QUEUES, TimerCore, TimerRules};
