//! The standard library's atomics, cells and threads, or loom's model of them under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::{
    cell::Cell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    cell::Cell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread,
};
