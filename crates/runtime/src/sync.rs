//! The standard library's primitives, or models of them: loom's under `--cfg loom`, shuttle's under `--cfg shuttle`.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};

/// A value on cache lines of its own: 128 bytes, since x86 prefetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
