//! How often a busy worker looks at the receive queue.

use headway_net::datapath::Rx;
use headway_sync::Padded;
use headway_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
pub const LOOK_NS: u64 = 5_000;

/// The same where a poll is a system call: one in vain takes 0.84 µs (EPYC 9004, `recvmmsg` of an empty UDP socket), 3 % of this.
const LOOK_BY_SYSTEM_CALL_NS: u64 = 25_000;

/// How often a busy worker polls a receive queue of this kind, unless told otherwise, ns.
pub(crate) fn usual_look_ns(rx: &dyn Rx) -> u64 {
    if rx.poll_is_system_call() {
        LOOK_BY_SYSTEM_CALL_NS
    } else {
        LOOK_NS
    }
}

/// What the last looks at the receive queues found. Whoever asks while a request runs looks at most once an interval: where what waits is known by a
/// system call, one a quantum took a fifth of a long request's time.
pub(crate) struct Looks {
    look_ns: u64,
    last: Box<[Padded<LastLook>]>,
}

/// Words that are read one after the other: they need not be of one look.
#[derive(Default)]
struct LastLook {
    /// When the next is due, ns.
    due_ns: AtomicU64,
    waiting: AtomicUsize,
}

impl Looks {
    /// At so many receive queues, each at most once in `look_ns`; 0 for no bound.
    pub(crate) fn new(queues: usize, look_ns: u64) -> Self {
        Self {
            look_ns,
            last: (0..queues).map(|_| Padded::default()).collect(),
        }
    }

    /// What waits at a receive queue, by a look of its own if one is due.
    #[inline]
    pub(crate) fn found(&self, now_ns: u64, queue: usize, look: impl FnOnce() -> usize) -> usize {
        if self.look_ns == 0 {
            return look();
        }
        let last = &self.last[queue];
        if now_ns < last.due_ns.load(Ordering::Relaxed) {
            return last.waiting.load(Ordering::Relaxed);
        }
        // Of two that find it due, one looks.
        last.due_ns.store(now_ns + self.look_ns, Ordering::Relaxed);
        let waiting = look();
        last.waiting.store(waiting, Ordering::Relaxed);
        waiting
    }

    /// A receive queue was polled. A poll that left nothing is a look that found nothing; after any other the next look is due.
    #[inline]
    pub(crate) fn polled(&self, now_ns: u64, queue: usize, emptied: bool) {
        if self.look_ns == 0 {
            return;
        }
        let last = &self.last[queue];
        if emptied {
            last.waiting.store(0, Ordering::Relaxed);
        }
        let due_ns = if emptied { now_ns + self.look_ns } else { 0 };
        last.due_ns.store(due_ns, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Never more looks than one an interval, whoever asks; and what waits is known an interval later at the latest.
        #[test]
        fn looks_keep_their_distance(
            look_ns in 1u64..100,
            asks in prop::collection::vec((0u64..40, any::<bool>()), 1..200),
        ) {
            let looks = Looks::new(1, look_ns);
            let (mut now_ns, mut looked, mut came_ns) = (1_000u64, Vec::new(), None);
            for (step_ns, comes) in asks {
                now_ns += step_ns;
                if comes && came_ns.is_none() {
                    came_ns = Some(now_ns);
                }
                let waits = usize::from(came_ns.is_some());
                let found = looks.found(now_ns, 0, || {
                    looked.push(now_ns);
                    waits
                });
                if let Some(at_ns) = came_ns {
                    prop_assert!(found == 1 || now_ns - at_ns < look_ns);
                    if found == 1 {
                        looks.polled(now_ns, 0, true);
                        came_ns = None;
                    }
                }
            }
            prop_assert!(looked.windows(2).all(|pair| pair[1] - pair[0] >= look_ns));
        }
    }

    #[test]
    fn a_poll_that_left_something_makes_the_next_look_due() {
        let looks = Looks::new(1, 100);
        assert_eq!(looks.found(1_000, 0, || 9), 9);
        looks.polled(1_001, 0, true);
        assert_eq!(looks.found(1_100, 0, || unreachable!()), 0);
        looks.polled(1_050, 0, false);
        assert_eq!(looks.found(1_051, 0, || 3), 3);
    }
}
