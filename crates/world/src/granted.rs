//! A world's arbiter, which grants and revokes the cores of a server's workers at any moment.
//!
//! Lines and orders are those of `headway-kthread`, and a kthread gives its core back as those do that link `headway-host`. The arbiter is the
//! world's: it looks at the lines as a daemon does, but how many cores it has, and which it takes back when, follows from the seed.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use headway_kthread::{CoreSource, Grant, KthreadLine, OrderLine};
use headway_sync::Guarded;
use headway_sync::world::{Announced, step};

use crate::scheduler::{draw, now_ns, spend};

/// How often the arbiter looks for entries that wait, ns: those that have waited since its last look are worth a core.
const LOOK_NS: u64 = 10_000;

/// The longest time in which the arbiter has no core at all, ns.
const NO_CORE_NS: u64 = 400_000;

/// What the arbiter of a world does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granting {
    /// The most cores that it has.
    pub(crate) cores: usize,
    /// The mean time between two revocations out of the blue, ns.
    pub(crate) revoke_ns: u64,
    /// The mean time between two changes of the number of cores, ns.
    pub(crate) change_ns: u64,
}

/// What became of the cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreLog {
    /// By kthread, when it had cores.
    pub(crate) held: Vec<Vec<CoreSpan>>,
    /// When the arbiter had a core to give, a kthread had none, and the arbiter granted none: a grant ends one time and begins the next.
    pub(crate) spare: Vec<Range<u64>>,
    /// Kthreads whose threads began, and those that ended.
    pub(crate) entered: usize,
    pub(crate) ended: usize,
    /// When the server closed its source of cores, ns.
    pub(crate) closed_ns: Option<u64>,
}

/// A time in which a kthread had a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreSpan {
    pub(crate) from_ns: u64,
    /// When the core was revoked.
    pub(crate) revoked_ns: Option<u64>,
    /// When the kthread left it.
    pub(crate) left_ns: Option<u64>,
}

/// The cores of a server, as its kthreads see them.
pub(crate) struct WorldCores {
    kthreads: Box<[WorldKthread]>,
    /// Kthreads that work or look for work.
    awake: AtomicUsize,
    /// How often work came while none was awake.
    wants: AtomicU64,
    /// Entries ever taken out of the queues that all kthreads share, and ever put into them.
    shared_head: AtomicU64,
    shared_tail: AtomicU64,
    closed: AtomicBool,
    bell: Guarded<ArbiterBell>,
    log: Mutex<CoreLog>,
}

#[derive(Default)]
struct WorldKthread {
    line: KthreadLine,
    orders: OrderLine,
    sleeper: Guarded<()>,
}

/// What wakes the arbiter.
#[derive(Default)]
struct ArbiterBell {
    rung: bool,
    ends: bool,
    ended: bool,
}

impl WorldCores {
    fn new(kthreads: usize) -> Self {
        Self {
            kthreads: (0..kthreads).map(|_| WorldKthread::default()).collect(),
            awake: AtomicUsize::new(0),
            wants: AtomicU64::new(0),
            shared_head: AtomicU64::new(0),
            shared_tail: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            bell: Guarded::default(),
            log: Mutex::new(CoreLog {
                held: vec![Vec::new(); kthreads],
                ..CoreLog::default()
            }),
        }
    }

    fn log(&self) -> MutexGuard<'_, CoreLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn ring(&self) {
        self.bell.lock().rung = true;
        self.bell.notify_one();
    }

    fn want(&self) {
        self.wants.fetch_add(1, Ordering::AcqRel);
        self.ring();
    }

    /// Heads and tails of the kthreads' run queues, and last of those that all share.
    fn queues(&self) -> impl Iterator<Item = (u64, u64)> {
        let runs = self.kthreads.iter().map(|kthread| &kthread.line);
        let runs = runs.map(|line| (&line.run_head, &line.run_tail));
        let all = runs.chain([(&self.shared_head, &self.shared_tail)]);
        all.map(|(head, tail)| (head.load(Ordering::Relaxed), tail.load(Ordering::Relaxed)))
    }

    /// Says that the kthread left this grant, and wakes the arbiter.
    fn give_back(&self, kthread: usize, grant: Grant) {
        self.kthreads[kthread].line.leave(grant);
        self.ring();
    }

    fn sleep_until_granted(&self, kthread: usize) -> Grant {
        let WorldKthread {
            line,
            orders,
            sleeper,
        } = &self.kthreads[kthread];
        loop {
            step();
            let granted = orders.granted();
            let is_new = granted > line.left();
            if is_new && orders.is_revoked(granted) && !self.is_closed() {
                self.give_back(kthread, granted);
            } else if is_new || self.is_closed() {
                self.awake.fetch_add(1, Ordering::AcqRel);
                self.log().held[kthread].push(CoreSpan {
                    from_ns: now_ns(),
                    revoked_ns: orders.is_revoked(granted).then(now_ns),
                    left_ns: None,
                });
                return granted;
            } else {
                let guard = sleeper.lock();
                let waits = || orders.granted() <= line.left() && !self.is_closed();
                drop(sleeper.wait_while(guard, |()| waits()));
            }
        }
    }

    fn wake(&self, kthread: usize) {
        let sleeper = &self.kthreads[kthread].sleeper;
        drop(sleeper.lock());
        sleeper.notify_all();
    }
}

impl CoreSource for WorldCores {
    fn kthreads(&self) -> usize {
        self.kthreads.len()
    }

    fn line(&self, kthread: usize) -> &KthreadLine {
        &self.kthreads[kthread].line
    }

    fn orders(&self, kthread: usize) -> &OrderLine {
        &self.kthreads[kthread].orders
    }

    fn enter(&self, kthread: usize) -> Grant {
        self.log().entered += 1;
        self.want();
        self.sleep_until_granted(kthread)
    }

    fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        let is_revoked = || self.kthreads[kthread].orders.is_revoked(grant);
        if self.is_closed() {
            return grant;
        }
        self.awake.fetch_sub(1, Ordering::AcqRel);
        step();
        if !is_revoked() && !finds_nothing() {
            self.awake.fetch_add(1, Ordering::AcqRel);
            if !is_revoked() {
                return grant;
            }
            self.awake.fetch_sub(1, Ordering::AcqRel);
        }
        step();
        if let Some(span) = self.log().held[kthread].last_mut() {
            span.left_ns = Some(now_ns());
        }
        self.give_back(kthread, grant);
        self.sleep_until_granted(kthread)
    }

    fn notify(&self) {
        step();
        if self.awake.load(Ordering::Relaxed) == 0 {
            self.want();
        }
    }

    fn put(&self, entries: u64) {
        self.shared_tail.fetch_add(entries, Ordering::Release);
    }

    fn took(&self, entries: u64) {
        self.shared_head.fetch_add(entries, Ordering::Release);
    }

    fn is_daemons_core(&self, _kthread: usize) -> bool {
        false
    }

    fn exit(&self) {
        self.log().ended += 1;
    }

    fn close(&self) {
        self.log().closed_ns.get_or_insert_with(now_ns);
        self.closed.store(true, Ordering::SeqCst);
        for kthread in 0..self.kthreads.len() {
            self.wake(kthread);
        }
    }
}

/// An arbiter that lives in a thread of the calling thread's world.
pub(crate) struct LivingArbiter {
    pub(crate) cores: Arc<WorldCores>,
    thread: JoinHandle<()>,
}

impl LivingArbiter {
    pub(crate) fn start(granting: Granting, kthreads: usize) -> Self {
        let cores = Arc::new(WorldCores::new(kthreads));
        let announced = Announced::of("arbiter").expect("the calling thread is of a world");
        let arbiter = CoreArbiter {
            cores: Arc::clone(&cores),
            granting,
            has: granting.cores,
            running: vec![None; kthreads],
            wants_seen: 0,
            tails_seen: vec![0; kthreads + 1],
            look_ns: 0,
            revoke_ns: 0,
            change_ns: 0,
        };
        let thread = thread::spawn(move || {
            let in_world = announced.begin();
            arbiter.serve();
            drop(in_world);
        });
        Self { cores, thread }
    }

    /// Ends the arbiter after its server; what became of the cores.
    pub(crate) fn end(self) -> (CoreLog, JoinHandle<()>) {
        let bell = &self.cores.bell;
        bell.lock().ends = true;
        bell.notify_one();
        let waiting = bell.lock();
        drop(bell.wait_while(waiting, |bell| !bell.ended));
        let log = self.cores.log().clone();
        (log, self.thread)
    }
}

/// The arbiter: who has cores, and what it saw of the queues.
struct CoreArbiter {
    cores: Arc<WorldCores>,
    granting: Granting,
    /// How many cores it has at the moment.
    has: usize,
    /// The grants in force, and those revoked that the kthread has not left.
    running: Vec<Option<RunningGrant>>,
    wants_seen: u64,
    /// The tails of the kthreads' run queues, and of the shared queues, at the last look.
    tails_seen: Vec<u64>,
    /// When the next of these is due, ns.
    look_ns: u64,
    revoke_ns: u64,
    change_ns: u64,
}

#[derive(Clone, Copy)]
struct RunningGrant {
    grant: Grant,
    is_revoked: bool,
}

impl CoreArbiter {
    fn serve(mut self) {
        let begun_ns = now_ns();
        self.revoke_ns = begun_ns + draw(2 * self.granting.revoke_ns);
        self.change_ns = begun_ns + draw(2 * self.granting.change_ns);
        let cores = Arc::clone(&self.cores);
        loop {
            // A look takes a while.
            let now_ns = spend(100);
            self.act(now_ns);
            let due_ns = self.revoke_ns.min(self.change_ns).min(self.look_ns);
            let mut bell = cores.bell.lock();
            if !bell.rung && !bell.ends {
                let most = Duration::from_nanos(due_ns.saturating_sub(now_ns).max(1));
                bell = cores.bell.wait_for(bell, most);
            }
            bell.rung = false;
            if bell.ends {
                bell.ended = true;
                break;
            }
        }
        cores.bell.notify_all();
    }

    fn act(&mut self, now_ns: u64) {
        for (kthread, running) in self.running.iter_mut().enumerate() {
            let left = self.cores.kthreads[kthread].line.left();
            if running.is_some_and(|running| left >= running.grant) {
                *running = None;
            }
        }
        self.change(now_ns);
        while self.unrevoked().count() > self.has {
            self.revoke_one(now_ns);
        }
        if now_ns >= self.revoke_ns {
            self.revoke_ns = now_ns + 1 + draw(2 * self.granting.revoke_ns);
            self.revoke_one(now_ns);
        }
        let wants = self.cores.wants.load(Ordering::Acquire);
        let asked = wants != self.wants_seen;
        let grants = (asked || self.is_congested(now_ns)) && self.grant_one();
        if grants {
            self.wants_seen = wants;
        }
        self.note_spare(now_ns, grants);
        // As a daemon, which looks at those that work and those with entries that wait.
        let is_busy = self.running.iter().any(Option::is_some) || self.waits();
        self.look_ns = if is_busy && self.has_spare() {
            now_ns + LOOK_NS
        } else {
            u64::MAX
        };
    }

    /// Cores come from elsewhere, and go there.
    fn change(&mut self, now_ns: u64) {
        if now_ns < self.change_ns {
            return;
        }
        self.has = draw(self.granting.cores as u64 + 1) as usize;
        let most_ns = if self.has == 0 {
            NO_CORE_NS
        } else {
            2 * self.granting.change_ns
        };
        self.change_ns = now_ns + 1 + draw(most_ns);
    }

    fn unrevoked(&self) -> impl Iterator<Item = usize> {
        let running = self.running.iter().enumerate();
        running
            .filter(|(_, running)| running.is_some_and(|running| !running.is_revoked))
            .map(|(kthread, _)| kthread)
    }

    fn revoke_one(&mut self, now_ns: u64) {
        let unrevoked: Vec<usize> = self.unrevoked().collect();
        if unrevoked.is_empty() {
            return;
        }
        let kthread = unrevoked[draw(unrevoked.len() as u64) as usize];
        let running = self.running[kthread].as_mut().expect("it has a core");
        running.is_revoked = true;
        self.cores.kthreads[kthread].orders.revoke_to(running.grant);
        let mut log = self.cores.log();
        if let Some(span) = log.held[kthread].last_mut()
            && span.left_ns.is_none()
        {
            span.revoked_ns = Some(now_ns);
        }
    }

    /// Whether an entry waits that waited at the last look too, or a kthread that only it can go on with.
    fn is_congested(&mut self, now_ns: u64) -> bool {
        if now_ns < self.look_ns && self.look_ns < u64::MAX {
            return false;
        }
        let mut is_congested = self.interrupted().is_some();
        let queues = self.cores.queues();
        for ((head, tail), seen) in queues.zip(&mut self.tails_seen) {
            is_congested |= *seen > head;
            *seen = tail;
        }
        is_congested
    }

    /// Whether an entry waits in a queue, or a kthread that only it can go on with.
    fn waits(&self) -> bool {
        let mut queues = self.cores.queues();
        self.interrupted().is_some() || queues.any(|(head, tail)| tail > head)
    }

    /// A kthread without a core that was interrupted in work that only it can go on with.
    fn interrupted(&self) -> Option<usize> {
        let mut kthreads = self.cores.kthreads.iter().zip(&self.running);
        kthreads.position(|(kthread, running)| running.is_none() && kthread.line.is_interrupted())
    }

    /// Whether a core is free, and a kthread has none.
    fn has_spare(&self) -> bool {
        let running = self.running.iter().flatten().count();
        running < self.has && running < self.running.len()
    }

    /// Grants a core, if it can.
    fn grant_one(&mut self) -> bool {
        if !self.has_spare() {
            return false;
        }
        let without: Vec<usize> = (0..self.running.len())
            .filter(|&kthread| self.running[kthread].is_none())
            .collect();
        let any = without[draw(without.len() as u64) as usize];
        let kthread = self.interrupted().unwrap_or(any);
        let grant = self.cores.kthreads[kthread].orders.grant(kthread as u32);
        self.running[kthread] = Some(RunningGrant {
            grant,
            is_revoked: false,
        });
        self.cores.wake(kthread);
        true
    }

    fn note_spare(&mut self, now_ns: u64, granted: bool) {
        let is_spare = self.has_spare();
        let mut log = self.cores.log();
        let open = log.spare.last_mut().filter(|last| last.end == u64::MAX);
        let goes_on = open.is_some() && is_spare && !granted;
        if goes_on {
            return;
        }
        if let Some(open) = open {
            open.end = now_ns;
        }
        if is_spare {
            log.spare.push(now_ns..u64::MAX);
        }
    }
}
