//! A server whose cores an arbiter grants and revokes: each worker is a kthread.
//!
//! A worker that must leave, or finds nothing to do, first says that it goes. Whoever dispatches tells the policy, and gives it nothing from then
//! on; without a dispatcher the workers that stay look after its queues. Then it gives its core back and sleeps until it is granted one.
//!
//! Two things nobody would see while no worker looks at the receive queues: a request that comes when none has a core, and one that comes while
//! all run long ones. A thread at each queue, the *door*, sees both, and tells the arbiter.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headway_kthread::{CoreSource, Grant};
use headway_machine::Clock;
use headway_machine::thread::stay_responsive;
use headway_net::datapath::Rx;
use headway_policy::BitSet;

use crate::queue::rx_waker::RxWaker;
use headway_sync::Padded;

/// How long a request may wait at a receive queue that no worker polls until the door tells of it, ns.
const UNPOLLED_NS: u64 = 100_000;

/// How often a running request that can be interrupted is asked whether its worker must leave, ns.
pub(crate) const LOOK_FOR_ORDERS_NS: u64 = 10_000;

/// How long a worker sleeps that finds nothing while the server stops: then it has no core that it could give back.
const STOPPING_SLEEP: Duration = Duration::from_micros(50);

/// The longest that a door sleeps; all that matters wakes it earlier.
const DOOR_SLEEP: Duration = Duration::from_secs(1);

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
    lock: Mutex<()>,
    changed: Condvar,
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
            lock: Mutex::new(()),
            changed: Condvar::new(),
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

    /// A worker polls this receive queue.
    #[inline]
    pub(crate) fn polled(&self, queue: usize, now_ns: u64) {
        let queue = &self.queues[queue];
        queue.polled_ns.store(now_ns, Ordering::Relaxed);
        if queue.told.load(Ordering::Relaxed) && queue.told.swap(false, Ordering::AcqRel) {
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
        self.source.close();
        self.wake_doors();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn come(&self, worker: usize) {
        self.active[worker].store(true, Ordering::Release);
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn go(&self, worker: usize) -> u32 {
        self.active[worker].store(false, Ordering::Release);
        let changes = self.changes.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_doors();
        }
        changes
    }

    fn wake_doors(&self) {
        // A door looks at what changed under this lock: holding it once means that it sleeps, or has seen the change.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Sleeps while `waits`, at most for so long.
    fn sleep_at_door(&self, most: Duration, waits: impl Fn() -> bool) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let slept = self.changed.wait_timeout_while(guard, most, |()| waits());
        drop(slept.unwrap_or_else(PoisonError::into_inner));
    }

    /// The door of this receive queue, until the server stops. Where requests run to their ends, no worker may poll the queue for long: then
    /// the door `looks` at it meanwhile.
    pub(crate) fn watch(&self, queue: usize, rx_waker: &RxWaker, looks: bool) {
        // It mostly sleeps, beside batch threads that compute. A kernel with lazy preemption would let it wait for their next tick, 4 ms at 250 Hz, and
        // with it every request that finds no worker here.
        let _ = stay_responsive();
        let tick = Duration::from_nanos(UNPOLLED_NS);
        while !self.is_closed() {
            if self.has_active() {
                let most = if looks { tick } else { DOOR_SLEEP };
                self.sleep_at_door(most, || self.has_active() && !self.is_closed());
                if looks && self.has_active() {
                    self.look(queue, self.clock.now_ns(), rx_waker.rx());
                }
                continue;
            }
            rx_waker.sleep_unless(DOOR_SLEEP.as_nanos() as u64, || {
                self.has_active() || self.is_closed()
            });
            if !self.has_active() && rx_waker.rx().backlog_hint() > 0 {
                self.source.notify();
                self.sleep_at_door(tick, || !self.is_closed() && !self.has_active());
            }
        }
    }

    fn look(&self, queue: usize, now_ns: u64, rx: &dyn Rx) {
        let polled = &self.queues[queue];
        let unpolled_ns = now_ns.saturating_sub(polled.polled_ns.load(Ordering::Relaxed));
        if unpolled_ns >= UNPOLLED_NS && rx.backlog_hint() > 0 {
            if !polled.told.swap(true, Ordering::AcqRel) {
                self.source.put(1);
            }
            self.source.notify();
        }
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
            thread::sleep(STOPPING_SLEEP);
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
            std::hint::spin_loop();
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
