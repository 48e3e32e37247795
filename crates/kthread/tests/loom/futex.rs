//! Futexes of a model. A sleep has no timeout, so that loom reports a lost wake-up as a deadlock.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// The kernel's side of all words of a model.
struct ModelSleepers {
    lock: Mutex<()>,
    woken: Condvar,
}

loom::lazy_static! {
    static ref SLEEPERS: ModelSleepers = ModelSleepers {
        lock: Mutex::new(()),
        woken: Condvar::new(),
    };
}

/// Sleeps while the word has this value.
pub(crate) fn wait(word: &AtomicU32, value: u32, _most: Duration) {
    let mut lock = SLEEPERS.lock.lock().unwrap();
    while word.load(Ordering::Acquire) == value {
        lock = SLEEPERS.woken.wait(lock).unwrap();
    }
}

/// Changes the word and wakes its sleepers.
pub(crate) fn wake(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    drop(SLEEPERS.lock.lock().unwrap());
    SLEEPERS.woken.notify_all();
}
