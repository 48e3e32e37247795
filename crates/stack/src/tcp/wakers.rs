//! Those who wait for the same.

use std::task::Waker;

/// The wakers of those who wait, each once. The first, which is mostly the only one, has a place here and none on the heap.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakers {
    /// Adds one who waits, once.
    pub(crate) fn add(&mut self, waker: &Waker) {
        match &self.first {
            None => self.first = Some(waker.clone()),
            Some(first) if first.will_wake(waker) => {}
            Some(_) => {
                if !self.others.iter().any(|other| other.will_wake(waker)) {
                    self.others.push(waker.clone());
                }
            }
        }
    }

    /// Wakes all, and forgets them.
    pub(crate) fn wake(&mut self) {
        if let Some(first) = self.first.take() {
            first.wake();
            self.others.drain(..).for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct CountsWakes(AtomicU32);

    impl Wake for CountsWakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_is_woken_once_and_again_only_if_it_waits_again() {
        let counts: [Arc<CountsWakes>; 3] = Default::default();
        let mut wakers = Wakers::default();
        for _ in 0..2 {
            counts
                .iter()
                .for_each(|one| wakers.add(&Arc::clone(one).into()));
        }
        wakers.wake();
        wakers.wake();
        wakers.add(&Arc::clone(&counts[1]).into());
        wakers.wake();
        let woken = counts.map(|one| one.0.load(Ordering::Relaxed));
        assert_eq!(woken, [1, 2, 1]);
    }
}
