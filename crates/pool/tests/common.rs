//! What the tests share.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use headway_machine::Clock;
use headway_pool::{ClassOptions, Pool};

/// The longest wait for a condition.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A pool of so many workers and one class, `job`.
pub(crate) fn pool(workers: usize) -> Pool {
    let builder = Pool::builder().workers(workers);
    builder.class("job", ClassOptions::new()).build().unwrap()
}

/// Whether the test, which needs jobs that are interrupted, is reported as skipped: jobs interrupt themselves by the time-stamp counter.
pub(crate) fn skips(test: &str) -> bool {
    let skips = !Clock::global().is_cheap();
    if skips {
        println!("SKIPPED {test}: no usable time-stamp counter");
    }
    skips
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A gate that jobs wait at until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        let (open, _) = self
            .0
            .1
            .wait_timeout_while(open, LIMIT, |open| !*open)
            .unwrap();
        assert!(*open, "the gate was never opened");
    }
}

/// Keeps so many workers busy until the gate opens; returns once they are.
pub(crate) fn occupy(pool: &Pool, workers: usize) -> Gate {
    let gate = Gate::default();
    for _ in 0..workers {
        let gate = gate.clone();
        pool.submit("job", move || gate.wait()).detach();
    }
    until("the workers are busy", || {
        pool.stats().total().running == workers
    });
    gate
}
