//! The shared state of threads and kthreads, for the tests by loom. Loom follows no switch of stacks, so its own threads stand for both.

pub(crate) mod current;
mod kthreads;

pub use kthreads::ModelKthreads;

use headway_sync::barrier;

use crate::reads::{OutsideReaders, ReadSections};

/// The reads of a read-mostly cell, by a kthread and from outside.
#[derive(Debug, Default)]
pub struct ModelReads {
    kthread: ReadSections,
    outside: OutsideReaders,
}

impl ModelReads {
    /// A read by the kthread, for one thread of the model.
    pub fn read<R>(&self, access: impl FnOnce() -> R) -> R {
        self.kthread.open();
        barrier::light();
        let result = access();
        self.kthread.close();
        result
    }

    /// A read from outside.
    pub fn read_outside<R>(&self, access: impl FnOnce() -> R) -> R {
        let phase = self.outside.begin();
        let result = access();
        self.outside.end(phase);
        result
    }

    /// For a writer that has swapped the pointer: waits for the reads of the old value.
    pub fn wait(&self) {
        barrier::heavy();
        if let Some(seen) = self.kthread.look() {
            while !self.kthread.has_ended(seen) {
                loom::thread::yield_now();
            }
        }
        self.outside.wait(loom::thread::yield_now);
    }
}
