//! The rescue of workers that wait for what is suspended.
//!
//! A request that owns a thread's state may be suspended while it holds a lock. Another request that wants the lock then sleeps in the kernel, and its worker with
//! it: if all workers do, nobody is left to resume the holder. So a thread of the server looks whether a worker sleeps in the middle of a request. While one
//! does, suspended requests go on at home, in their own threads, until the worker gets on. Deadlock by suspension is impossible; what it cost is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use headway_machine::thread::ThreadActivity;
use headway_sync::{Guarded, Padded};

use super::suspended::SuspendedRequests;
use crate::stats::own_time::OwnTime;
use crate::threads::control::{ServerControl, ServerPhase};

/// Between two looks while requests are being suspended. A worker sleeps for one to two of them before it is noticed.
const LOOK: Duration = Duration::from_micros(400);

/// Looks without a suspension and without a worker that sleeps until they become rarer.
const LOOKS_BEFORE_RARE: u32 = 50;

/// Between two rare looks, while workers run requests.
const RARE_LOOK: Duration = Duration::from_millis(20);

/// Between two rare looks while no worker does: the next suspension wakes the thread.
const REST: Duration = Duration::from_secs(1);

/// How many requests go home at the first look that finds a worker asleep; twice as many at each further one.
const FIRST_HOME: usize = 4;

/// What the workers of a server share with the thread that rescues them.
pub(crate) struct Rescue {
    control: Arc<ServerControl>,
    workers: Guarded<Vec<Arc<WorkerTurns>>>,
    /// Whether a request was suspended since the last look.
    suspended: AtomicBool,
    /// Whether the thread looks often.
    is_awake: AtomicBool,
    /// By class: suspended requests that went home.
    sent_home: Box<[AtomicU64]>,
}

/// The count of a worker that has ended.
const LEFT: u64 = u64::MAX - 1;

/// A worker's turns, as others see them.
pub(crate) struct WorkerTurns {
    /// Turns begun and ended: odd in the middle of one.
    count: Padded<AtomicU64>,
    own_time: OwnTime,
    /// `None` where the system does not tell: then nobody is rescued.
    state: Option<ThreadActivity>,
}

impl WorkerTurns {
    #[cold]
    fn is_asleep(&self) -> bool {
        let state = self.state.as_ref();
        state.and_then(ThreadActivity::is_asleep) == Some(true)
    }

    /// The worker has ended.
    pub(super) fn leave(&self) {
        self.count.store(LEFT, Ordering::Release);
    }

    fn has_left(&self) -> bool {
        self.count.load(Ordering::Acquire) == LEFT
    }

    /// The worker begins a turn, or ends one.
    #[inline(always)]
    pub(super) fn step(&self) {
        // One writer.
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }
}

impl Rescue {
    /// Of a server with so many classes, UNKNOWN included.
    pub(crate) fn new(control: Arc<ServerControl>, classes: usize) -> Self {
        Self {
            control,
            workers: Guarded::new(Vec::new()),
            suspended: AtomicBool::new(false),
            is_awake: AtomicBool::new(true),
            sent_home: (0..classes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The calling thread is a worker from now on.
    pub(super) fn join(&self) -> Arc<WorkerTurns> {
        let turns = Arc::new(WorkerTurns {
            count: Padded(AtomicU64::new(0)),
            own_time: OwnTime::of_current(),
            state: ThreadActivity::of_current(),
        });
        self.workers.lock().push(Arc::clone(&turns));
        turns
    }

    /// A request was suspended that could go home.
    #[inline]
    pub(super) fn watch(&self) {
        if !self.suspended.load(Ordering::Relaxed) {
            self.suspended.store(true, Ordering::Relaxed);
            if !self.is_awake.load(Ordering::Relaxed) {
                self.awake();
            }
        }
    }

    #[cold]
    fn awake(&self) {
        self.is_awake.store(true, Ordering::Relaxed);
        self.control.notify_waiting();
    }

    /// Whether no worker is left to look after: after an abandoned drain they end one by one.
    fn is_over(&self) -> bool {
        match self.control.phase() {
            ServerPhase::Stopped => true,
            ServerPhase::Abandoning => self.workers.lock().iter().all(|worker| worker.has_left()),
            ServerPhase::Running | ServerPhase::Draining => false,
        }
    }

    /// By class, the suspended requests that went home, since a worker waited.
    pub(crate) fn sent_home(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.sent_home.iter();
        counts.map(|count| count.load(Ordering::Relaxed))
    }

    /// Looks after the workers until the server has stopped. For a thread of its own.
    pub(crate) fn run(&self, suspended: &SuspendedRequests) {
        let mut watch = Watch::default();
        let mut quiet_looks = 0;
        while !self.is_over() {
            let was_suspended = self.suspended.swap(false, Ordering::Relaxed);
            let seen = watch.look(&self.workers.lock());
            if seen == Seen::Asleep {
                let tell = |class: usize| {
                    self.sent_home[class.min(self.sent_home.len() - 1)]
                        .fetch_add(1, Ordering::Relaxed);
                };
                suspended.send_home(watch.most_home(), tell);
            }
            let is_quiet = !was_suspended && seen != Seen::Asleep;
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            let is_rare = quiet_looks > LOOKS_BEFORE_RARE;
            let is_ending = self.control.phase() >= ServerPhase::Abandoning;
            let pause = match seen {
                _ if !is_rare || is_ending => LOOK,
                Seen::Idle => REST,
                _ => RARE_LOOK,
            };
            self.is_awake.store(!is_rare, Ordering::Relaxed);
            self.control
                .wait_past_for(ServerPhase::Abandoning, pause, || {
                    is_rare && self.is_awake.load(Ordering::Relaxed)
                });
        }
    }
}

/// What a look at the workers found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// None runs a request.
    Idle,
    /// Some do, and get on or may.
    Running,
    /// One has not had a core since the last look, in the middle of a request.
    Asleep,
}

/// The workers as they were at the last look.
#[derive(Default)]
struct Watch {
    /// The count of turns, and the worker's own time in ns while the turn lasts.
    last: Vec<(u64, Option<u64>)>,
    /// Looks in a row that found a worker asleep.
    asleep_looks: u32,
}

impl Watch {
    fn look(&mut self, workers: &[Arc<WorkerTurns>]) -> Seen {
        self.last.resize(workers.len(), (0, None));
        let mut seen = Seen::Idle;
        for (worker, last) in workers.iter().zip(&mut self.last) {
            let count = worker.count.load(Ordering::Relaxed);
            let is_in_turn = count % 2 == 1;
            if !is_in_turn || count != last.0 {
                *last = (count, None);
                if is_in_turn && seen == Seen::Idle {
                    seen = Seen::Running;
                }
                continue;
            }
            let own_ns = worker.own_time.read_ns();
            let stands_still = own_ns.is_some() && own_ns == last.1;
            // It may wait for a core, which nobody can help.
            let is_asleep = stands_still && worker.is_asleep();
            *last = (count, own_ns);
            if is_asleep {
                seen = Seen::Asleep;
            } else if seen == Seen::Idle {
                seen = Seen::Running;
            }
        }
        self.asleep_looks = if seen == Seen::Asleep {
            self.asleep_looks + 1
        } else {
            0
        };
        seen
    }

    /// How many requests go home now.
    fn most_home(&self) -> usize {
        FIRST_HOME << self.asleep_looks.saturating_sub(1).min(16)
    }
}
