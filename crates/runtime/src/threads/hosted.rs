//! A server whose cores an arbiter grants and revokes: each worker is a kthread.
//!
//! A worker that must leave, or finds nothing to do, first says that it goes. Whoever dispatches tells the policy, and gives it nothing from then
//! on; without a dispatcher the workers that stay look after its queues. Then it gives its core back and sleeps until it is granted one.
//!
//! What nobody would see while no worker looks at the receive queues, a thread at each queue sees: its [`door`](super::door).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use headway_kthread::{CoreSource, Grant};
use headway_machine::Clock;
use headway_policy::BitSet;

use headway_sync::world::{self, step};
use headway_sync::{Guarded, Padded};

/// How often a running request that can be interrupted is asked whether its worker must leave, ns.
pub(crate) const LOOK_FOR_ORDERS_NS: u64 = 10_000;

/// How long a worker sleeps that finds nothing while the server stops: then it has no core that it could give back.
const STOPPING_SLEEP: Duration = Duration::from_micros(50);

/// Where a server's cores come from, as a setting.
#[derive(Clone)]
pub(crate) struct ServerCores(pub(crate) Arc<dyn CoreSource>);

impl fmt::Debug for ServerCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kthreads = self.0.kthreads();
        f.debug_struct("ServerCores")
            .field("kthreads", &kthreads)
            .finish()
    }
}

/// Which workers have cores, and who watches the receive queues.
pub(crate) struct HostedCores {
    source: Arc<dyn CoreSource>,
    active: Box<[Padded<AtomicBool>]>,
    count: AtomicUsize,
    /// How often a worker came or went.
    changes: Padded<AtomicU32>,
    /// The last of these that the dispatcher has told its policy of.
    applied: Padded<AtomicU32>,
    queues: Box<[Padded<PolledQueue>]>,
    /// For doors, which sleep until the last worker goes or the server stops.
    changed: Guarded<()>,
    closed: AtomicBool,
    clock: Clock,
}

/// How a receive queue is looked after.
#[derive(Default)]
struct PolledQueue {
    /// When a worker last polled it, ns.
    polled_ns: AtomicU64,
    /// The door told the arbiter of a request that waits here.
    told: AtomicBool,
}

impl HostedCores {
    pub(crate) fn new(source: &ServerCores, workers: usize, queues: usize, clock: Clock) -> Self {
        Self {
            clock,
            source: Arc::clone(&source.0),
            active: (0..workers).map(|_| Padded::default()).collect(),
            count: AtomicUsize::new(0),
            changes: Padded::default(),
            applied: Padded::default(),
            queues: (0..queues).map(|_| Padded::default()).collect(),
            changed: Guarded::new(()),
            closed: AtomicBool::new(false),
        }
    }

    /// How often a worker came or went.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// The workers that have cores, at this change or a later one.
    pub(crate) fn active(&self) -> BitSet {
        let active = self.active.iter().enumerate();
        active
            .filter(|(_, active)| active.load(Ordering::Acquire))
            .map(|(worker, _)| worker)
            .collect()
    }

    #[inline]
    pub(crate) fn is_active(&self, worker: usize) -> bool {
        self.active[worker].load(Ordering::Acquire)
    }

    /// Whether any worker has a core.
    #[inline]
    pub(crate) fn has_active(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether some worker has none.
    #[inline]
    pub(crate) fn has_absent(&self) -> bool {
        self.count.load(Ordering::Relaxed) < self.active.len()
    }

    /// The dispatcher has told its policy of the changes so far.
    pub(crate) fn apply(&self, changes: u32) {
        self.applied.store(changes, Ordering::Release);
    }

    /// The changes that the dispatcher has told its policy of.
    #[cfg(test)]
    pub(crate) fn applied(&self) -> u32 {
        self.applied.load(Ordering::Acquire)
    }

    /// A worker polls this receive queue.
    #[inline]
    pub(crate) fn polled(&self, queue: usize, now_ns: u64) {
        let queue = &self.queues[queue];
        queue.polled_ns.store(now_ns, Ordering::Relaxed);
        if queue.told.load(Ordering::Relaxed) && queue.told.swap(false, Ordering::AcqRel) {
            step();
            self.source.took(1);
        }
    }

    /// Says how many entries came into a queue that all workers share and how many left it, and that some wait there still.
    #[inline]
    pub(crate) fn moved(&self, came: u64, left: u64, wait: bool) {
        if came > 0 {
            self.source.put(came);
        }
        if left > 0 {
            self.source.took(left);
        }
        if wait {
            self.source.notify();
        }
    }

    /// A thief took so many requests out of this worker's run queue.
    pub(crate) fn stolen(&self, victim: usize, requests: usize) {
        let line = self.source.line(victim);
        line.run_head.fetch_add(requests as u64, Ordering::Relaxed);
    }

    /// The server stops: from now on nobody waits for a core.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        step();
        self.source.close();
        self.wake_doors();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn come(&self, worker: usize) {
        self.active[worker].store(true, Ordering::Release);
        step();
        self.count.fetch_add(1, Ordering::AcqRel);
        step();
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn go(&self, worker: usize) -> u32 {
        self.active[worker].store(false, Ordering::Release);
        step();
        let changes = self.changes.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        step();
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_doors();
        }
        changes
    }

    fn wake_doors(&self) {
        // A door looks at what changed under this lock: holding it once means that it sleeps, or has seen the change.
        drop(self.changed.lock());
        self.changed.notify_all();
    }

    /// The thread of a door sleeps here if it still `waits`: until the last worker goes or the server stops, and for so long at most. It may return early.
    pub(super) fn sleep_at_door(&self, most: Duration, waits: impl Fn() -> bool) {
        let guard = self.changed.lock();
        if waits() {
            drop(self.changed.wait_for(guard, most));
        }
    }

    /// A request waits at a receive queue, and no worker has a core.
    pub(super) fn ask_for_core(&self) {
        self.source.notify();
    }

    /// A request waits at a receive queue that no worker has polled for long: the arbiter sees it until a worker polls there.
    pub(super) fn tell_of_unpolled(&self, queue: usize) {
        if !self.queues[queue].told.swap(true, Ordering::AcqRel) {
            self.source.put(1);
        }
        self.source.notify();
    }

    /// When a worker last polled this receive queue, ns.
    pub(super) fn polled_ns(&self, queue: usize) -> u64 {
        self.queues[queue].polled_ns.load(Ordering::Relaxed)
    }
}

/// A worker's core. Dropped by the worker's own thread.
pub(crate) struct WorkerCore {
    cores: Arc<HostedCores>,
    worker: usize,
    grant: Grant,
    is_here: bool,
    /// The tail of the worker's run queue that its line shows.
    run_tail: u64,
}

impl WorkerCore {
    /// Waits for the first core of this worker.
    pub(crate) fn enter(cores: &Arc<HostedCores>, worker: usize) -> Self {
        let grant = cores.source.enter(worker);
        cores.come(worker);
        Self {
            cores: Arc::clone(cores),
            worker,
            grant,
            is_here: true,
            run_tail: 0,
        }
    }

    pub(crate) fn cores(&self) -> &Arc<HostedCores> {
        &self.cores
    }

    /// Whether the worker must leave its core.
    #[inline]
    pub(crate) fn is_revoked(&self) -> bool {
        self.cores.source.orders(self.worker).is_revoked(self.grant) && !self.cores.is_closed()
    }

    /// The worker is about to go. `false`: the server stops, and it stays; it slept a little instead.
    pub(crate) fn withdraw(&mut self, mut until_unnoticed: impl FnMut() -> bool) -> bool {
        if self.cores.is_closed() {
            world::sleep(STOPPING_SLEEP);
            return false;
        }
        self.is_here = false;
        let changes = self.cores.go(self.worker);
        // Who holds the dispatcher's lock itself needs no answer: whoever leads next hears of it first.
        while (self
            .cores
            .applied
            .load(Ordering::Acquire)
            .wrapping_sub(changes) as i32)
            < 0
            && !until_unnoticed()
        {
            // A reading is a pause, and a thread of a deterministic world makes way for others where it reads the clock.
            let _ = self.cores.clock.now_ns();
        }
        true
    }

    /// Gives the core back until there is one again. `waits`: something is left here that this worker alone, or nobody else who has a core,
    /// can go on with.
    pub(crate) fn leave(&mut self, waits: bool, finds_nothing: &mut dyn FnMut() -> bool) {
        let line = self.cores.source.line(self.worker);
        line.set_interrupted(waits);
        self.grant = self
            .cores
            .source
            .leave(self.worker, self.grant, finds_nothing);
        line.set_interrupted(false);
        self.cores.come(self.worker);
        self.is_here = true;
    }

    /// Shows the arbiter the worker's run queue: one request more may have been taken out of it.
    #[inline]
    pub(crate) fn show_run_queue(&mut self, took: bool, waiting: usize) {
        let (line, waiting) = (self.cores.source.line(self.worker), waiting as u64);
        let head = line.run_head.load(Ordering::Relaxed) + u64::from(took);
        let tail = self.run_tail.max(head + waiting);
        if tail != self.run_tail {
            self.run_tail = tail;
            line.run_tail.store(tail, Ordering::Relaxed);
        }
        // Thieves advance it as well.
        line.run_head.fetch_max(tail - waiting, Ordering::Relaxed);
        if waiting > 0 {
            self.cores.source.notify();
        }
    }
}

impl Drop for WorkerCore {
    fn drop(&mut self) {
        if self.is_here {
            self.cores.go(self.worker);
        }
        self.cores.source.exit();
    }
}
