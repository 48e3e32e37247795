//! Kthreads that look for work, while others sleep.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine, Standalone};
use headway_policy::host::Patience;
use headway_threads::{Migration, Runtime, spawn};

/// The kthread that sleeps.
const LAST: usize = 2;

/// A source whose last kthread sleeps until the first notice after [`LateSource::arm`].
struct LateSource {
    inner: Standalone,
    is_armed: AtomicBool,
    is_awake: Mutex<bool>,
    changed: Condvar,
}

impl LateSource {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Standalone::new(LAST + 1),
            is_armed: AtomicBool::new(false),
            is_awake: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    fn arm(&self) {
        self.is_armed.store(true, Ordering::Release);
    }

    fn wake(&self) {
        *self.is_awake.lock().expect("nobody panics with it") = true;
        self.changed.notify_all();
    }
}

impl CoreSource for LateSource {
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
        if kthread == LAST {
            let is_awake = self.is_awake.lock().expect("nobody panics with it");
            let awake = self.changed.wait_while(is_awake, |is_awake| !*is_awake);
            drop(awake.expect("nobody panics with it"));
        }
        self.inner.enter(kthread)
    }

    fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        self.inner.leave(kthread, grant, finds_nothing)
    }

    fn notify(&self) {
        if self.is_armed.load(Ordering::Acquire) {
            self.wake();
        }
        self.inner.notify();
    }

    fn put(&self, entries: u64) {
        self.inner.put(entries);
    }

    fn took(&self, entries: u64) {
        self.inner.took(entries);
    }

    fn is_daemons_core(&self, _: usize) -> bool {
        false
    }

    fn exit(&self) {
        self.inner.exit();
    }

    fn close(&self) {
        self.wake();
        self.inner.close();
    }
}

/// Two threads become ready at once while one kthread looks for work, which takes the first. The second must not wait behind the thread that made them ready
/// while the third kthread sleeps.
#[test]
fn whoever_ends_a_search_wakes_another_for_what_it_leaves() {
    for _ in 0..50 {
        let source = LateSource::new();
        let given: Arc<dyn CoreSource> = Arc::<LateSource>::clone(&source);
        // SAFETY: the threads use no thread-local variables of `std`.
        let migration = unsafe { Migration::allow() };
        let runtime = Runtime::builder()
            .source(given, migration)
            .patience(Patience {
                spin_ns: 1_000_000_000_000,
            });
        runtime.start().expect("kthreads").run(move || {
            // The second kthread begins to look for work.
            thread::sleep(Duration::from_millis(2));
            source.arm();
            let met = Arc::new(AtomicU64::new(0));
            let others = [(); 2].map(|()| {
                let met = Arc::clone(&met);
                spawn(move || meet(&met))
            });
            meet(&met);
            for other in others {
                other.join().expect("it met the others");
            }
        });
    }
}

/// Computes until three threads run at once.
fn meet(met: &AtomicU64) {
    met.fetch_add(1, Ordering::AcqRel);
    let begun = Instant::now();
    while met.load(Ordering::Acquire) < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "one waits");
        thread::yield_now();
    }
}
