//! What the dispatcher decided about the assignment that a worker runs, for a worker whose probes read the clock: it looks here at the end of a
//! slice, and nobody interrupts it in between.

use headway_sync::Padded;
use headway_sync::atomic::{AtomicU64, Ordering};

/// Until when a request goes on that yields.
const YIELDS: u64 = 0;

/// The dispatcher's decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SliceVerdict {
    /// The request goes on.
    GoesOn {
        /// When the monitor wants to look again, ns; `u64::MAX` for never.
        until_ns: u64,
        /// After how much service the monitor wanted to look at the request first, ns.
        quantum_ns: u64,
    },
    /// The request yields.
    Yields,
}

/// The last verdict, on a line of its own: the dispatcher writes it, the worker reads it, neither waits.
#[derive(Debug, Default)]
pub(crate) struct VerdictCell(Padded<VerdictWords>);

#[derive(Debug, Default)]
struct VerdictWords {
    /// The assignment that it is about.
    epoch: AtomicU64,
    until_ns: AtomicU64,
    quantum_ns: AtomicU64,
}

impl VerdictCell {
    /// The dispatcher decides about the assignment of this epoch, which it has read.
    #[inline]
    pub(crate) fn publish(&self, epoch: u64, verdict: SliceVerdict) {
        let words = &*self.0;
        match verdict {
            SliceVerdict::GoesOn {
                until_ns,
                quantum_ns,
            } => {
                words.quantum_ns.store(quantum_ns, Ordering::Relaxed);
                words.until_ns.store(until_ns.max(1), Ordering::Relaxed);
            }
            SliceVerdict::Yields => words.until_ns.store(YIELDS, Ordering::Relaxed),
        }
        words.epoch.store(epoch, Ordering::Release);
    }

    /// The last verdict about the assignment of this epoch, which the worker runs; `None` where there is none yet. The times cannot be those of a
    /// later one, since the dispatcher writes of that only when the worker has begun it.
    #[inline]
    pub(crate) fn read(&self, epoch: u64) -> Option<SliceVerdict> {
        let words = &*self.0;
        if words.epoch.load(Ordering::Acquire) != epoch {
            return None;
        }
        Some(match words.until_ns.load(Ordering::Relaxed) {
            YIELDS => SliceVerdict::Yields,
            until_ns => SliceVerdict::GoesOn {
                until_ns,
                quantum_ns: words.quantum_ns.load(Ordering::Relaxed),
            },
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::request::assignment::{Assignment, AssignmentCell};

    #[test]
    fn a_verdict_is_about_one_assignment() {
        let cell = VerdictCell::default();
        let goes_on = SliceVerdict::GoesOn {
            until_ns: 7,
            quantum_ns: 5,
        };
        assert_eq!(cell.read(1), None);
        cell.publish(1, goes_on);
        assert_eq!((cell.read(1), cell.read(2)), (Some(goes_on), None));
        cell.publish(1, SliceVerdict::Yields);
        assert_eq!(
            (cell.read(1), cell.read(2)),
            (Some(SliceVerdict::Yields), None)
        );
    }

    /// A worker never takes what was decided about one request for another: here the times name their assignment.
    #[test]
    fn verdicts_and_assignments_do_not_mix() {
        const ASSIGNMENTS: u64 = 100_000;
        let (verdicts, assignments) = (VerdictCell::default(), AssignmentCell::default());
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                for epoch in 1..=ASSIGNMENTS {
                    assignments.publish(Assignment {
                        epoch,
                        job: 0,
                        since_ns: 0,
                    });
                    // So that some verdicts come in time, and some too late.
                    for _ in 0..epoch % 16 {
                        std::hint::spin_loop();
                    }
                    if let Some(verdict) = verdicts.read(epoch) {
                        let goes_on = SliceVerdict::GoesOn {
                            until_ns: 3 * epoch,
                            quantum_ns: 5 * epoch,
                        };
                        let fits = verdict == SliceVerdict::Yields || verdict == goes_on;
                        assert!(fits, "{epoch}: {verdict:?}");
                    }
                }
            });
            while !worker.is_finished() {
                let Some(Assignment { epoch, .. }) = assignments.read() else {
                    continue;
                };
                let goes_on = SliceVerdict::GoesOn {
                    until_ns: 3 * epoch,
                    quantum_ns: 5 * epoch,
                };
                verdicts.publish(epoch, goes_on);
                verdicts.publish(epoch, SliceVerdict::Yields);
            }
        });
    }
}
