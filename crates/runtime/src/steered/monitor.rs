//! SYNERGY's timer core: a thread that carries the monitor out for all workers (§ 4.3, Algorithm 5.3).
//!
//! It reads which request each worker runs, and at the end of a quantum asks the worker's queues and the policy whether the request goes on. A
//! worker meets nothing of this but the flag of a request that is to yield. The thread sleeps only while all workers do.

use std::sync::Arc;

use headway_fiber::Asker;
use headway_machine::Clock;
use headway_policy::WorkerId;
use headway_policy::server::role::{Monitor, PreemptionDecision, Unplaced};

use super::peers::{Glances, Peers};
use super::worker_slot::{Running, SteeredWorkerSlot};
use crate::stats::overruns::{ENDLESS_NS, Overruns};
use crate::stats::own_time::SuspectedRun;
use crate::stats::tally::Tally;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::rules::RulesReceiver;

/// A request that was asked to yield and goes on is asked again after this time, ns: it may have been where no probe is.
const AGAIN_NS: u64 = 200_000;

/// Turns in a row that found all workers asleep before the thread sleeps too: a worker that just woke may be about to run something.
const TURNS_BEFORE_SLEEP: u32 = 64;

/// What the monitor's thread is made of.
pub(super) struct MonitorParts<M> {
    pub(super) monitor: M,
    pub(super) rules: RulesReceiver<M>,
    pub(super) worker_slots: Vec<Arc<SteeredWorkerSlot>>,
    pub(super) peers: Arc<Peers>,
    pub(super) control: Arc<ServerControl>,
    pub(super) overruns: Arc<Overruns>,
    /// The thread's own.
    pub(super) tally: Arc<Tally>,
    pub(super) clock: Clock,
    /// Whether threads without work may sleep.
    pub(super) may_sleep: bool,
    /// More threads than cores: the thread gives its core up after each turn.
    pub(super) oversubscribed: bool,
}

/// The monitor's thread.
pub(super) struct MonitorThread<M> {
    watch: SteeredWatch<M>,
    watched: Vec<WatchedWorker>,
    rules: RulesReceiver<M>,
    control: Arc<ServerControl>,
    clock: Clock,
    may_sleep: bool,
    oversubscribed: bool,
    /// Turns in a row that found all workers asleep.
    asleep_turns: u32,
}

impl<M: Monitor> MonitorThread<M> {
    pub(super) fn new(parts: MonitorParts<M>) -> Self {
        let worker_slots = parts.worker_slots.into_iter();
        Self {
            watch: SteeredWatch {
                monitor: parts.monitor,
                peers: parts.peers,
                overruns: parts.overruns,
                tally: parts.tally,
            },
            watched: worker_slots.map(WatchedWorker::new).collect(),
            rules: parts.rules,
            control: parts.control,
            clock: parts.clock,
            may_sleep: parts.may_sleep,
            oversubscribed: parts.oversubscribed,
            asleep_turns: 0,
        }
    }

    /// Watches until all workers have ended.
    pub(super) fn run(mut self) {
        while self.step() {}
    }

    /// Looks at each worker once. `false` once the server has stopped, or all workers have ended.
    #[inline]
    fn step(&mut self) -> bool {
        let Self { watch, control, .. } = self;
        let stopped = control.phase() == ServerPhase::Stopped;
        if stopped || self.watched.iter().all(WatchedWorker::is_gone) {
            return false;
        }
        let abandons = control.phase() >= ServerPhase::Abandoning;
        self.rules.adopt(control, |fresh| {
            watch.monitor.adopt(fresh);
            true
        });
        let now_ns = self.clock.now_ns();
        watch.tick(now_ns);
        for (worker, watched) in self.watched.iter_mut().enumerate() {
            watch.look_at(now_ns, WorkerId(worker as u16), watched, abandons);
        }
        self.asleep_turns = if watch.peers.all_asleep() {
            self.asleep_turns + 1
        } else {
            0
        };
        if self.may_sleep && self.asleep_turns > TURNS_BEFORE_SLEEP {
            watch
                .peers
                .sleep_beside_workers(|| control.phase() != ServerPhase::Running);
        }
        if self.oversubscribed {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        true
    }
}

/// The monitor and what it looks at.
struct SteeredWatch<M> {
    monitor: M,
    peers: Arc<Peers>,
    overruns: Arc<Overruns>,
    tally: Arc<Tally>,
}

/// A worker as the monitor's thread saw it last.
struct WatchedWorker {
    worker_slot: Arc<SteeredWorkerSlot>,
    asker: Option<Asker>,
    running: Option<Running>,
    /// Whether the monitor knows that the request has said that it is long.
    heard: bool,
    /// When to ask the monitor about what runs; never where it is `u64::MAX`.
    due_ns: u64,
    /// When the request was first asked to yield; never where it is `u64::MAX`.
    asked_ns: u64,
    /// The worker's own time since it was late to yield.
    suspected: SuspectedRun,
    /// Whether it was counted as an overrun.
    overran: bool,
}

impl WatchedWorker {
    fn new(worker_slot: Arc<SteeredWorkerSlot>) -> Self {
        Self {
            worker_slot,
            asker: None,
            running: None,
            heard: false,
            due_ns: u64::MAX,
            asked_ns: u64::MAX,
            suspected: SuspectedRun::default(),
            overran: false,
        }
    }

    /// Whether the worker has ended. Its thread waits until its flag is dropped here.
    fn is_gone(&self) -> bool {
        self.worker_slot.is_gone() && self.asker.is_none()
    }

    /// The worker's flag: taken over when the worker has begun, dropped when it has ended.
    #[inline]
    fn asker(&mut self) -> Option<&Asker> {
        if self.asker.is_none() {
            self.asker = self.worker_slot.take_asker();
        }
        self.asker.as_ref()
    }

    /// Whether its thread has run on for so long since it was asked that the request may never yield; true once.
    fn overruns_for_long(&mut self, now_ns: u64) -> bool {
        if self.overran || now_ns.saturating_sub(self.asked_ns) < AGAIN_NS {
            return false;
        }
        let own_time = self.worker_slot.own_time.get();
        self.overran = own_time.is_some_and(|thread| self.suspected.own_ns(thread) > ENDLESS_NS);
        self.overran
    }

    #[cold]
    fn ask(&mut self, now_ns: u64, epoch: u64) {
        self.asked_ns = self.asked_ns.min(now_ns);
        let asked_ns = self.asked_ns;
        if let Some(asker) = self.asker() {
            asker.ask_with(epoch, asked_ns);
        }
    }
}

impl<M: Monitor> SteeredWatch<M> {
    /// Finds out which wait queues are congested, when it is time.
    #[inline]
    fn tick(&mut self, now_ns: u64) {
        let due_ns = self.monitor.next_deadline_ns();
        if due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            let congested = self.monitor.tick(now_ns, &*self.peers);
            self.peers.set_congested(congested);
        }
    }

    /// Looks at one worker, and interrupts its request if its time has come; any request once the server `abandons` them.
    #[inline]
    fn look_at(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        watched: &mut WatchedWorker,
        abandons: bool,
    ) {
        let running = watched.worker_slot.running();
        let epoch = running.map(|running| running.epoch);
        if epoch != watched.running.map(|running| running.epoch) {
            self.changed(now_ns, worker, watched, running);
        }
        match running {
            Some(running) => {
                if M::HEEDS && running.job.said_long && !watched.heard {
                    self.hear(now_ns, worker, watched, &running);
                }
                let is_first_ask = abandons && watched.asked_ns == u64::MAX;
                if now_ns >= watched.due_ns || is_first_ask {
                    self.expired(now_ns, worker, watched, &running, abandons);
                }
            }
            None if watched.worker_slot.is_gone() => watched.asker = None,
            None => {}
        }
    }

    /// The worker ended what it ran, or began something.
    fn changed(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        watched: &mut WatchedWorker,
        running: Option<Running>,
    ) {
        if let Some(ended) = watched.running {
            self.monitor.stopped(now_ns, worker, ended.epoch);
        }
        watched.running = running;
        watched.heard = running.is_some_and(|running| running.job.said_long);
        watched.due_ns = u64::MAX;
        watched.asked_ns = u64::MAX;
        watched.suspected = SuspectedRun::default();
        watched.overran = false;
        if let Some(Running {
            epoch,
            job,
            since_ns,
        }) = running
        {
            let glances = Glances {
                peers: &self.peers,
                now_ns,
            };
            let since_ns = since_ns.min(now_ns);
            let after_ns = self
                .monitor
                .started(since_ns, worker, &job, epoch, &glances);
            watched.due_ns = since_ns.saturating_add(after_ns.unwrap_or(u64::MAX));
        }
    }

    /// The request that runs said that it is long.
    #[cold]
    fn hear(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        watched: &mut WatchedWorker,
        running: &Running,
    ) {
        watched.heard = true;
        let since_ns = running.since_ns.min(now_ns);
        let glances = Glances {
            peers: &self.peers,
            now_ns,
        };
        let after_ns =
            self.monitor
                .said_long(since_ns, worker, &running.job, running.epoch, &glances);
        if let Some(after_ns) = after_ns {
            watched.due_ns = since_ns.saturating_add(after_ns);
        }
    }

    /// The time came at which the monitor wanted to look at what the worker runs.
    #[cold]
    fn expired(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        watched: &mut WatchedWorker,
        running: &Running,
        abandons: bool,
    ) {
        let decision = if abandons {
            PreemptionDecision::Preempt
        } else {
            let glances = Glances {
                peers: &self.peers,
                now_ns,
            };
            self.monitor.expired(now_ns, worker, &Unplaced, &glances)
        };
        let class = running.job.class.0;
        let tally = self.tally.class(class);
        match decision {
            PreemptionDecision::Preempt => {
                if watched.asked_ns == u64::MAX {
                    tally.preemptions_asked.add(1);
                }
                watched.due_ns = now_ns + AGAIN_NS;
                watched.ask(now_ns, running.epoch);
                if watched.overruns_for_long(now_ns) {
                    self.overruns.still_runs(&self.tally, class);
                }
            }
            PreemptionDecision::Renew(for_ns)
            | PreemptionDecision::RenewAlone(for_ns)
            | PreemptionDecision::RenewWhileQuiet {
                each_ns: for_ns, ..
            } => {
                self.tally.renewed(worker.index(), class);
                watched.due_ns = now_ns + for_ns;
            }
            PreemptionDecision::Leave => watched.due_ns = u64::MAX,
        }
    }
}
