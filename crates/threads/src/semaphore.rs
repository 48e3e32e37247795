//! A counting semaphore for threads.

use crate::condvar::Condvar;
use crate::mutex::Mutex;

/// Permits: [`acquire`](Semaphore::acquire) waits until there is one.
#[derive(Debug)]
pub struct Semaphore {
    permits: Mutex<usize>,
    released: Condvar,
}

impl Semaphore {
    /// A semaphore with this many permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Semaphore {
            permits: Mutex::new(permits),
            released: Condvar::new(),
        }
    }

    /// Takes a permit, and waits until there is one.
    ///
    /// # Panics
    /// No permit is free, and the caller is no thread of a runtime.
    pub fn acquire(&self) {
        let mut permits = self.permits.lock();
        while *permits == 0 {
            permits = self.released.wait(permits);
        }
        *permits -= 1;
    }

    /// Takes a permit if there is one.
    pub fn try_acquire(&self) -> bool {
        let mut permits = self.permits.lock();
        let taken = *permits > 0;
        *permits -= usize::from(taken);
        taken
    }

    /// Gives a permit back, or adds one.
    pub fn release(&self) {
        *self.permits.lock() += 1;
        self.released.notify_one();
    }
}
