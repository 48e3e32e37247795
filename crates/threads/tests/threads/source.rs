//! An arbiter for the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine, Standalone};
use headway_threads::{Migration, Runtime, RuntimeBuilder};

/// A source whose arbiter is the test: it takes a core back by its [`OrderLine`], and gives it again a little later.
pub(crate) struct TestSource {
    inner: Standalone,
    left: AtomicU64,
    put: AtomicU64,
    taken: AtomicU64,
    exits: AtomicU64,
}

impl TestSource {
    /// A source for this many kthreads.
    pub(crate) fn new(kthreads: usize) -> Arc<TestSource> {
        Arc::new(TestSource {
            inner: Standalone::new(kthreads),
            left: AtomicU64::new(0),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            exits: AtomicU64::new(0),
        })
    }

    /// The number of cores given back after an order to leave.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// The entries that wait in the queue of all kthreads.
    pub(crate) fn waiting(&self) -> u64 {
        self.put.load(Ordering::Acquire) - self.taken.load(Ordering::Acquire)
    }

    /// The number of kthreads that have ended.
    pub(crate) fn exits(&self) -> u64 {
        self.exits.load(Ordering::Acquire)
    }

    /// A runtime on these cores.
    pub(crate) fn runtime(self: &Arc<Self>) -> RuntimeBuilder {
        let source: Arc<dyn CoreSource> = Arc::<TestSource>::clone(self);
        // SAFETY: the tests' threads use no thread-local variables of `std`.
        let migration = unsafe { Migration::allow() };
        Runtime::builder().source(source, migration)
    }
}

impl CoreSource for TestSource {
    fn kthreads(&self) -> usize {
        self.inner.kthreads()
    }

    fn line(&self, kthread: usize) -> &KthreadLine {
        self.inner.line(kthread)
    }

    fn orders(&self, kthread: usize) -> &OrderLine {
        self.inner.orders(kthread)
    }

    fn enter(&self, kthread: usize) -> Grant {
        self.inner.enter(kthread)
    }

    fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        if !self.orders(kthread).is_revoked(grant) {
            return self.inner.leave(kthread, grant, finds_nothing);
        }
        self.left.fetch_add(1, Ordering::AcqRel);
        thread::sleep(Duration::from_micros(200));
        self.orders(kthread).grant(0)
    }

    fn notify(&self) {
        self.inner.notify();
    }

    fn put(&self, entries: u64) {
        self.put.fetch_add(entries, Ordering::AcqRel);
    }

    fn took(&self, entries: u64) {
        self.taken.fetch_add(entries, Ordering::AcqRel);
    }

    fn is_daemons_core(&self, _: usize) -> bool {
        false
    }

    fn exit(&self) {
        self.exits.fetch_add(1, Ordering::AcqRel);
    }

    fn close(&self) {
        self.inner.close();
    }
}
