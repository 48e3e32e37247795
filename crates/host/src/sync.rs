//! The atomics of the code that the [models by loom](../../kthread/tests/loom/main.rs) include, where loom's replace them.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
