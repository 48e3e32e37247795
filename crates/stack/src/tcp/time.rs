//! Times: nanoseconds since the stack's beginning. Nothing below the sockets reads a clock.

pub(crate) const MILLISECOND_NS: u64 = 1_000_000;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
