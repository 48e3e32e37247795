//! A worker that serves its own receive queue.

use std::sync::Arc;

use headway_machine::Clock;
use headway_policy::server::role::{Local, Next};
use headway_policy::{ClassId, Job, JobId};

use super::peers::Peers;
use super::view::SteeredQueues;
use crate::request::executor::Executor;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::hosted::{HostedCores, WorkerCore};
use crate::threads::park::Backoff;
use crate::threads::rules::RulesReceiver;

/// Longest sleep while everybody sleeps; packets and orders wake earlier.
const MAX_SLEEP_NS: u64 = 1_000_000_000;
/// Longest sleep of a thief while others are awake: nobody wakes it when a request comes to a busy worker.
const THIEF_SLEEP_NS: u64 = 1_000_000;

/// What a worker of any kind has.
pub(super) struct SteeredWorker<L> {
    pub(super) index: usize,
    pub(super) local: L,
    pub(super) rules: RulesReceiver<L>,
    pub(super) view: SteeredQueues,
    pub(super) executor: Executor,
    pub(super) peers: Arc<Peers>,
    pub(super) control: Arc<ServerControl>,
    pub(super) backoff: Backoff,
    pub(super) clock: Clock,
    /// When the last request stopped running, ns, where the next turn may take that for now.
    pub(super) stopped_ns: Option<u64>,
    /// Of a server whose workers come and go: until the worker's thread has its first core.
    pub(super) cores: Option<Arc<HostedCores>>,
    pub(super) core: Option<WorkerCore>,
    pub(super) drain: WorkerDrain,
}

/// How far a worker is with its drain.
#[derive(Clone, Copy)]
pub(super) enum WorkerDrain {
    /// It accepts everything.
    NotBegun,
    /// It answers what was sent before, as far as buffers would have held it.
    Answers,
    /// It refuses what comes while others still answer; the last to have answered ends it.
    Refuses,
}

/// How a worker runs the request that its local policy chose.
pub(super) trait RequestRunner<L> {
    /// Looks at what is due although nothing happened.
    fn tick(&mut self, now_ns: u64, worker: &SteeredWorker<L>);

    /// Adopts new rules, if it can now.
    fn adopt(&mut self, control: &ServerControl) -> bool;

    /// Runs it, for at most `slice_ns` if the worker is to stop by itself. When it finished or yielded, ns.
    fn run(&mut self, job: JobId, slice_ns: Option<u64>, worker: &mut SteeredWorker<L>) -> u64;
}

/// Runs requests to their ends, on the worker's own stack.
pub(super) struct ToTheEnd;

impl<L: Local> RequestRunner<L> for ToTheEnd {
    fn tick(&mut self, _now_ns: u64, _worker: &SteeredWorker<L>) {}

    fn adopt(&mut self, _control: &ServerControl) -> bool {
        true
    }

    #[inline]
    fn run(&mut self, job: JobId, _slice_ns: Option<u64>, worker: &mut SteeredWorker<L>) -> u64 {
        let mut slot = worker.view.take(job).into_slot();
        let (class, arrived_ns) = worker.executor.describe(&slot);
        let ran = worker.executor.run(&mut slot);
        worker.executor.count(&ran);
        worker.backoff.ran(&ran.span_ns);
        let job = Job::new(job, ClassId(class), arrived_ns);
        let now_ns = ran.span_ns.end;
        let SteeredWorker { local, view, .. } = worker;
        local.finished(now_ns, &job, ran.cpu_ns, view);
        view.release(slot);
        now_ns
    }
}

impl<L: Local> SteeredWorker<L> {
    /// Serves until the server stops.
    pub(super) fn serve(mut self, mut runner: impl RequestRunner<L>) {
        let cores = self.cores.take();
        self.core = cores.map(|cores| WorkerCore::enter(&cores, self.index));
        while self.step(&mut runner) {}
        self.view
            .give_up(&mut *self.executor.tx, self.clock.now_ns());
    }

    /// Runs one request, if there is one anywhere, or waits a little; refuses one batch once the worker has drained. `false` when it is to end.
    #[inline]
    pub(super) fn step(&mut self, runner: &mut impl RequestRunner<L>) -> bool {
        if self.control.phase() != ServerPhase::Running {
            return self.drain_step(runner);
        }
        if self.core.as_ref().is_some_and(WorkerCore::is_revoked) {
            self.step_aside(true);
        }
        let busy = self.turn(runner);
        self.rest_unless(busy, ServerPhase::Running);
        true
    }

    #[cold]
    fn drain_step(&mut self, runner: &mut impl RequestRunner<L>) -> bool {
        let drains = self.control.phase() == ServerPhase::Draining;
        let drain = self.drain;
        match drain {
            WorkerDrain::NotBegun => {
                self.view.limit(self.view.free());
                self.drain = WorkerDrain::Answers;
            }
            WorkerDrain::Answers if drains && self.turn(runner) => {}
            WorkerDrain::Answers => {
                self.drain = WorkerDrain::Refuses;
                if self.peers.drained() {
                    self.control.advance(ServerPhase::Stopped);
                }
            }
            WorkerDrain::Refuses if drains => self.turn_away(),
            WorkerDrain::Refuses => return false,
        }
        true
    }

    fn turn_away(&mut self) {
        let now_ns = self.clock.now_ns();
        self.view.advance_to(now_ns);
        let busy = self.view.turn_away() > 0;
        self.view.flush(&mut *self.executor.tx, now_ns);
        self.rest_unless(busy, ServerPhase::Draining);
    }

    /// Waits a little after a turn with nothing to do, at most until the phase is over.
    #[inline]
    fn rest_unless(&mut self, busy: bool, phase: ServerPhase) {
        if busy {
            self.backoff.reset();
        } else if self.backoff.exhausted() {
            self.sleep_in(phase);
        }
    }

    /// Runs one request, if there is one anywhere.
    #[inline]
    fn turn(&mut self, runner: &mut impl RequestRunner<L>) -> bool {
        let stopped_ns = self.stopped_ns.take();
        let now_ns = stopped_ns.unwrap_or_else(|| self.clock.now_ns());
        self.view.advance_to(now_ns);
        let Self { local, control, .. } = self;
        self.rules.adopt(control, |fresh| {
            local.adopt(fresh);
            runner.adopt(control)
        });
        runner.tick(now_ns, self);
        let next = self.local.next(now_ns, &mut self.view);
        self.view.flush(&mut *self.executor.tx, now_ns);
        if let Some(core) = &mut self.core {
            let took = matches!(next, Next::Run { .. });
            core.show_run_queue(took, self.view.queued());
        }
        match next {
            Next::Run { job, slice_ns } => {
                if L::STEALS && self.core.is_none() && self.backoff.may_sleep() {
                    self.peers.wake_one();
                }
                let stopped_ns = runner.run(job, slice_ns, self);
                // Sending takes a time of its own where it is a system call.
                let took_long = self.executor.tx.send_is_system_call();
                self.stopped_ns = (!took_long).then_some(stopped_ns);
            }
            Next::Retry => {}
            Next::Idle => return false,
        }
        true
    }

    /// The core is revoked, or of no use: the worker gives it back, and gets on when it has one again. Those that have cores look after its
    /// queues meanwhile.
    #[cold]
    fn step_aside(&mut self, revoked: bool) {
        let Some(core) = &mut self.core else { return };
        if core.withdraw(|| true) {
            let waits = revoked && !self.view.finds_nothing();
            let view = &self.view;
            core.leave(waits, &mut || view.finds_nothing());
        }
        self.backoff.slept();
    }

    fn sleep_in(&mut self, phase: ServerPhase) {
        if self.core.is_some() {
            return self.step_aside(false);
        }
        let thief = L::STEALS && !self.peers.all_asleep_but(self.index);
        let timeout_ns = if thief { THIEF_SLEEP_NS } else { MAX_SLEEP_NS };
        let control = &self.control;
        self.peers
            .sleep_unless(self.index, timeout_ns, || control.phase() != phase);
        self.peers.wake_monitor();
        self.backoff.slept();
    }
}
