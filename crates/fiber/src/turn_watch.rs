//! Whether a worker sleeps in the middle of a turn, as another thread sees it.
//!
//! A job that owns a thread's state may be suspended while it holds a lock. Who wants the lock then sleeps in the kernel, and its worker with it: if all workers do,
//! nobody is left to resume the holder. So a thread looks whether a worker sleeps in the middle of a turn. While one does, suspended jobs
//! [go on at home](crate::SendFiber::run_at_home) until the worker gets on.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::thread::{CpuClock, ThreadActivity};
use headway_sync::Padded;

use crate::abi::words::FIBER_OFFSET;
use crate::fs;
use crate::local::self_offset;
use crate::stack_copy::word_at;

/// How many jobs go home at the first look that finds a worker asleep; twice as many at each further one.
const FIRST_HOME: usize = 4;

/// Looks in a row that found a worker before a job at home until another one goes home too.
const WANTED_LOOKS: u32 = 3;

/// The count of a worker that has ended.
const LEFT: u64 = u64::MAX - 1;

/// The time that a thread itself had a core, read by any thread.
pub trait ReadsOwnTime {
    /// Nanoseconds; `None` where nobody knows.
    fn own_ns(&self) -> Option<u64>;
}

impl ReadsOwnTime for CpuClock {
    fn own_ns(&self) -> Option<u64> {
        self.read_ns()
    }
}

/// A worker's turns, as others see them. Only the worker itself begins and ends them.
#[derive(Debug)]
pub struct WorkerTurns<T = CpuClock> {
    /// Turns begun and ended: odd in the middle of one.
    count: Padded<AtomicU64>,
    own_time: T,
    /// The base of its thread-local variables.
    base: usize,
    /// `None` where the system does not tell: then the worker is never seen asleep.
    state: Option<ThreadActivity>,
}

impl<T: ReadsOwnTime> WorkerTurns<T> {
    /// The calling thread's, by its own time.
    pub fn of_current(own_time: T) -> Self {
        Self {
            count: Padded(AtomicU64::new(0)),
            own_time,
            base: fs::base(),
            state: ThreadActivity::of_current(),
        }
    }

    #[cold]
    fn is_asleep(&self) -> bool {
        let state = self.state.as_ref();
        state.and_then(ThreadActivity::is_asleep) == Some(true)
    }

    /// The worker has ended.
    pub fn leave(&self) {
        self.count.store(LEFT, Ordering::Release);
    }

    /// Whether the worker has ended.
    pub fn has_left(&self) -> bool {
        self.count.load(Ordering::Acquire) == LEFT
    }

    /// Whether the worker runs this fiber, one without a thread's state of its own.
    ///
    /// # Errors
    /// As [`StackCopy::take`](crate::StackCopy::take).
    pub fn runs(&self, fiber: NonNull<()>) -> io::Result<bool> {
        let word = self.base.wrapping_add(self_offset()) + FIBER_OFFSET;
        Ok(word_at(word)? == Some(fiber.as_ptr() as usize))
    }

    /// The worker begins a turn, or ends one.
    #[inline(always)]
    pub fn step(&self) {
        // One writer.
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    /// The worker is in no turn from now on, whether it was in one or not.
    #[inline(always)]
    pub fn rest(&self) {
        if self.count.load(Ordering::Relaxed) % 2 == 1 {
            self.step();
        }
    }
}

/// What a look at workers found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnsSeen {
    /// None is in a turn.
    Idle,
    /// Some are, and get on or may.
    Running,
    /// One has not had a core since the last look, in the middle of a turn.
    Asleep,
}

/// The workers as they were at the last look.
#[derive(Debug)]
pub struct TurnWatch {
    /// The count of turns, and the worker's own time in ns while the turn lasts.
    last: Vec<(u64, Option<u64>)>,
    /// Looks in a row that found a worker asleep.
    asleep_looks: u32,
    /// Looks in a row before which a worker was told to go on with a job at home.
    wanted_looks: u32,
}

impl TurnWatch {
    /// Has room for so many workers: a look at no more of them allocates nothing.
    #[must_use]
    pub fn for_workers(most: usize) -> Self {
        Self {
            last: Vec::with_capacity(most),
            asleep_looks: 0,
            wanted_looks: 0,
        }
    }

    /// Looks at these workers; a system call or two for each that is in the turn of the last look.
    pub fn look<T: ReadsOwnTime>(&mut self, workers: &[Arc<WorkerTurns<T>>]) -> TurnsSeen {
        self.last.resize(workers.len(), (0, None));
        let mut seen = TurnsSeen::Idle;
        for (worker, last) in workers.iter().zip(&mut self.last) {
            let count = worker.count.load(Ordering::Relaxed);
            let is_in_turn = count % 2 == 1;
            if !is_in_turn || count != last.0 {
                *last = (count, None);
                if is_in_turn && seen == TurnsSeen::Idle {
                    seen = TurnsSeen::Running;
                }
                continue;
            }
            let own_ns = worker.own_time.own_ns();
            let stands_still = own_ns.is_some() && own_ns == last.1;
            // It may wait for a core, which nobody can help.
            let is_asleep = stands_still && worker.is_asleep();
            *last = (count, own_ns);
            if is_asleep {
                seen = TurnsSeen::Asleep;
            } else if seen == TurnsSeen::Idle {
                seen = TurnsSeen::Running;
            }
        }
        self.asleep_looks = if seen == TurnsSeen::Asleep {
            self.asleep_looks + 1
        } else {
            0
        };
        seen
    }

    /// Whether one that was asleep at the last look is still: it has had no core since, and is in the same turn.
    pub fn sleeps_on<T: ReadsOwnTime>(&self, workers: &[Arc<WorkerTurns<T>>]) -> bool {
        workers.iter().zip(&self.last).any(|(worker, last)| {
            let is_in_turn = last.0 % 2 == 1 && worker.count.load(Ordering::Relaxed) == last.0;
            is_in_turn
                && last.1.is_some()
                && worker.own_time.own_ns() == last.1
                && worker.is_asleep()
        })
    }

    /// How many suspended jobs go home after a look that found no worker asleep. `is_wanted`: before it a worker was told to go on with one that is at home, and could
    /// not. If that lasts, the one at home may wait for a suspended one that its policy has come later, and for which no worker ever asks.
    pub fn most_home_beside_wanted(&mut self, is_wanted: bool) -> usize {
        self.wanted_looks = if is_wanted { self.wanted_looks + 1 } else { 0 };
        usize::from(self.wanted_looks >= WANTED_LOOKS)
    }

    /// How many suspended jobs go home after a look that found a worker asleep.
    pub fn most_home(&self) -> usize {
        FIRST_HOME << self.asleep_looks.saturating_sub(1).min(16)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Sender};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// What a thread's own time is unknown by.
    const UNKNOWN: u64 = u64::MAX;

    /// A thread's own time, as the test says.
    #[derive(Clone, Debug, Default)]
    struct SaidOwnTime(Arc<AtomicU64>);

    impl ReadsOwnTime for SaidOwnTime {
        fn own_ns(&self) -> Option<u64> {
            Some(self.0.load(Ordering::Relaxed)).filter(|&own_ns| own_ns != UNKNOWN)
        }
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < limit, "{what}");
        }
    }

    /// A worker in its first turn, whose thread really sleeps until it is let go, and then computes until the test is over.
    struct SleepingWorker {
        turns: [Arc<WorkerTurns<SaidOwnTime>>; 1],
        own_time: SaidOwnTime,
        lets_go: Sender<()>,
        is_over: Arc<AtomicU64>,
    }

    impl Drop for SleepingWorker {
        fn drop(&mut self) {
            self.is_over.store(1, Ordering::Relaxed);
        }
    }

    impl SleepingWorker {
        fn new() -> Self {
            let own_time = SaidOwnTime::default();
            let is_over = Arc::<AtomicU64>::default();
            let (its_time, its_end) = (own_time.clone(), Arc::clone(&is_over));
            let (tell, hear) = mpsc::channel();
            let (lets_go, waits) = mpsc::channel();
            thread::spawn(move || {
                tell.send(Arc::new(WorkerTurns::of_current(its_time)))
                    .unwrap();
                let _ = waits.recv();
                while its_end.load(Ordering::Relaxed) == 0 {
                    std::hint::spin_loop();
                }
            });
            let worker = Self {
                turns: [hear.recv().unwrap()],
                own_time,
                lets_go,
                is_over,
            };
            worker.turns[0].step();
            worker.until_asleep(true);
            worker
        }

        fn until_asleep(&self, asleep: bool) {
            until("it goes to sleep, or wakes", || {
                self.turns[0].is_asleep() == asleep
            });
        }

        fn has_own_time(&self, own_ns: u64) {
            self.own_time.0.store(own_ns, Ordering::Relaxed);
        }

        /// The looks that find it asleep.
        fn looked_at(&self) -> TurnWatch {
            let mut watch = TurnWatch::for_workers(1);
            assert_eq!(watch.look(&self.turns), TurnsSeen::Running);
            assert!(!watch.sleeps_on(&self.turns), "it was looked at once");
            // The second look knows its time, the third finds that it stands still.
            assert_eq!(watch.look(&self.turns), TurnsSeen::Running);
            until("the watch finds it asleep", || {
                watch.look(&self.turns) == TurnsSeen::Asleep
            });
            watch
        }
    }

    #[test]
    fn a_worker_that_had_a_core_since_the_look_does_not_sleep_on() {
        let worker = SleepingWorker::new();
        let watch = worker.looked_at();
        assert!(watch.sleeps_on(&worker.turns));
        worker.has_own_time(1);
        assert!(!watch.sleeps_on(&worker.turns));
        worker.has_own_time(UNKNOWN);
        assert!(!watch.sleeps_on(&worker.turns));
        worker.has_own_time(0);
        assert!(watch.sleeps_on(&worker.turns));
    }

    #[test]
    fn a_worker_in_another_turn_or_in_none_does_not_sleep_on() {
        let worker = SleepingWorker::new();
        let mut watch = worker.looked_at();
        worker.turns[0].step();
        assert!(!watch.sleeps_on(&worker.turns), "it is in no turn");
        worker.turns[0].step();
        assert!(!watch.sleeps_on(&worker.turns), "it is in another one");
        worker.turns[0].rest();
        for _ in 0..3 {
            assert_eq!(watch.look(&worker.turns), TurnsSeen::Idle);
            assert!(!watch.sleeps_on(&worker.turns), "it was in none");
        }
    }

    /// Its time stands still, as that of a thread that waits for a core.
    #[test]
    fn a_worker_that_was_woken_does_not_sleep_on() {
        let worker = SleepingWorker::new();
        let watch = worker.looked_at();
        worker.lets_go.send(()).unwrap();
        worker.until_asleep(false);
        assert!(!watch.sleeps_on(&worker.turns));
    }

    #[test]
    fn a_worker_whose_time_nobody_knows_never_sleeps() {
        let worker = SleepingWorker::new();
        worker.has_own_time(UNKNOWN);
        let mut watch = TurnWatch::for_workers(1);
        for _ in 0..4 {
            assert_eq!(watch.look(&worker.turns), TurnsSeen::Running);
            assert!(!watch.sleeps_on(&worker.turns));
        }
    }

    #[test]
    fn one_goes_home_a_look_while_a_worker_asks_for_what_is_at_home() {
        let mut watch = TurnWatch::for_workers(1);
        let wanted = [true, true, false, true, true, true, true, false, true];
        let sent = wanted.map(|is_wanted| watch.most_home_beside_wanted(is_wanted));
        assert_eq!(sent, [0, 0, 0, 0, 0, 1, 1, 0, 0]);
    }
}
