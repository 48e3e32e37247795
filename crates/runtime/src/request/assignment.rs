//! The assignment that a worker runs, published for the dispatcher: a quantum starts where the request does, since dispatch
//! is asynchronous (Concord § 3.2).

use headway_sync::Padded;
use headway_sync::atomic::{AtomicU64, Ordering, fence};

/// Assignments of one worker are numbered from 1, modulo this less one: an epoch is never 0, and rarely the same again.
const EPOCHS: u64 = 1 << 40;

/// The number after `epoch`.
#[inline]
pub(crate) fn next_epoch(epoch: u64) -> u64 {
    epoch % (EPOCHS - 1) + 1
}

/// What runs on a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Assignment {
    /// Its number; 0 before the first.
    pub(crate) epoch: u64,
    /// The request, as the policy knows it.
    pub(crate) job: u32,
    /// Since when, ns.
    pub(crate) since_ns: u64,
}

/// The last assignment a worker took up, on a line of its own: one thread writes it, one reads it, neither waits.
#[derive(Debug, Default)]
pub(crate) struct AssignmentCell(EpochCell<2>);

impl AssignmentCell {
    /// Its address, for a prefetch of its line.
    #[inline]
    pub(crate) fn address(&self) -> *const () {
        (&raw const *self.0.0).cast()
    }

    /// The worker takes this assignment up.
    #[inline]
    pub(crate) fn publish(&self, assignment: Assignment) {
        let words = [u64::from(assignment.job), assignment.since_ns];
        self.0.publish(assignment.epoch, words);
    }

    /// The assignment taken up last; `None` before the first, and while it changes.
    #[inline]
    pub(crate) fn read(&self) -> Option<Assignment> {
        let (epoch, [job, since_ns]) = self.0.read()?;
        Some(Assignment {
            epoch,
            job: job as u32,
            since_ns,
        })
    }
}

/// An epoch and `N` words that belong to it, on lines of their own: one thread writes them, one reads them, neither waits.
#[derive(Debug, Default)]
pub(crate) struct EpochCell<const N: usize>(Padded<EpochWords<N>>);

#[derive(Debug)]
struct EpochWords<const N: usize> {
    epoch: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for EpochWords<N> {
    fn default() -> Self {
        Self {
            epoch: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl<const N: usize> EpochCell<N> {
    /// Replaces epoch and words. The epoch is not 0.
    #[inline]
    pub(crate) fn publish(&self, epoch: u64, words: [u64; N]) {
        let cell = &*self.0;
        // A reader that comes in between sees an epoch that is neither the last nor the next, and looks again later.
        cell.epoch.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, word) in cell.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        cell.epoch.store(epoch, Ordering::Release);
    }

    /// Withdraws what was published.
    #[inline]
    pub(crate) fn withdraw(&self) {
        self.0.epoch.store(0, Ordering::Release);
    }

    /// Epoch and words; `None` before the first, while they change, and once they were withdrawn.
    #[inline]
    pub(crate) fn read(&self) -> Option<(u64, [u64; N])> {
        let cell = &*self.0;
        let epoch = cell.epoch.load(Ordering::Acquire);
        let words = std::array::from_fn(|place| cell.words[place].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let unchanged = cell.epoch.load(Ordering::Relaxed) == epoch;
        (epoch != 0 && unchanged).then_some((epoch, words))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_never_zero() {
        assert_eq!(next_epoch(0), 1);
        assert_eq!(next_epoch(EPOCHS - 2), EPOCHS - 1);
        assert_eq!(next_epoch(EPOCHS - 1), 1);
    }

    #[test]
    fn what_is_read_was_written_as_a_whole() {
        const ASSIGNMENTS: u64 = 200_000;
        let cell = AssignmentCell::default();
        assert_eq!(cell.read(), None);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for epoch in 1..=ASSIGNMENTS {
                    cell.publish(Assignment {
                        epoch,
                        job: (3 * epoch) as u32,
                        since_ns: 7 * epoch,
                    });
                }
            });
            let mut last = 0;
            while !writer.is_finished() {
                let Some(seen) = cell.read() else { continue };
                assert!(seen.epoch >= last, "time goes on");
                assert_eq!(
                    (u64::from(seen.job), seen.since_ns),
                    (3 * seen.epoch, 7 * seen.epoch)
                );
                last = seen.epoch;
            }
        });
        assert_eq!(cell.read().map(|last| last.epoch), Some(ASSIGNMENTS));
    }
}
