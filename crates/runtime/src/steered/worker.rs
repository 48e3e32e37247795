//! A worker that serves its own receive queue.

use std::sync::Arc;

use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Local, Next};
use headway_policy::{ClassId, Job, JobId};

use super::peers::Peers;
use super::view::View;
use crate::control::{Control, Phase};
use crate::executor::Executor;
use crate::park::Patience;
use crate::service::Service;

/// Longest sleep while everybody sleeps; packets and orders wake earlier.
const MAX_SLEEP_NS: u64 = 1_000_000_000;
/// Longest sleep of a thief while others are awake: nobody rings when a request comes to a busy one.
const THIEF_SLEEP_NS: u64 = 1_000_000;

/// One worker thread.
pub(super) struct Worker<L, S, R: Rx, T, C> {
    pub(super) index: usize,
    pub(super) local: L,
    pub(super) view: View<R, C>,
    pub(super) executor: Executor<S, T>,
    pub(super) peers: Arc<Peers<R>>,
    pub(super) control: Arc<Control>,
    pub(super) patience: Patience,
    pub(super) clock: Clock,
}

impl<L: Local, S: Service, R: Rx, T: Tx, C: Classifier> Worker<L, S, R, T, C> {
    /// Serves until the server stops.
    pub(super) fn run(mut self) {
        while self.control.phase() == Phase::Running {
            let busy = self.turn();
            self.rest_unless(busy, Phase::Running);
        }
        self.drain();
        self.turn_away();
        self.view
            .give_up(&mut self.executor.tx, self.clock.now_ns());
    }

    /// Answers what was sent before, as far as buffers would have held it.
    fn drain(&mut self) {
        self.view.limit(self.view.free());
        while self.control.phase() == Phase::Draining && self.turn() {}
    }

    /// Refuses what comes while others still answer; the last to have answered ends it.
    fn turn_away(&mut self) {
        if self.peers.drained() {
            self.control.advance(Phase::Stopped);
        }
        while self.control.phase() == Phase::Draining {
            let now_ns = self.clock.now_ns();
            self.view.advance_to(now_ns);
            let busy = self.view.turn_away() > 0;
            self.view.flush(&mut self.executor.tx, now_ns);
            self.rest_unless(busy, Phase::Draining);
        }
    }

    /// Waits a little after a turn with nothing to do, at most until the phase is over.
    #[inline]
    fn rest_unless(&mut self, busy: bool, phase: Phase) {
        if busy {
            self.patience.reset();
        } else if self.patience.exhausted() {
            self.sleep_in(phase);
        }
    }

    /// Runs one request, if there is one anywhere.
    #[inline]
    fn turn(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        self.view.advance_to(now_ns);
        let next = self.local.next(now_ns, &mut self.view);
        self.view.flush(&mut self.executor.tx, now_ns);
        match next {
            Next::Run { job, .. } => self.serve(job),
            Next::Retry => {}
            Next::Idle => return false,
        }
        true
    }

    #[inline]
    fn serve(&mut self, id: JobId) {
        if L::STEALS && self.patience.may_sleep() {
            self.peers.wake_one();
        }
        let mut slot = self.view.take(id);
        let (class, arrived_ns) = self.executor.describe(&slot);
        let ran = self.executor.run(&mut slot);
        self.executor.count(&ran);
        self.patience.ran(&ran.span_ns);
        let job = Job::new(id, ClassId(class), arrived_ns);
        let now_ns = self.clock.now_ns();
        self.local
            .finished(now_ns, &job, ran.cpu_ns, &mut self.view);
        self.view.release(slot);
    }

    fn sleep_in(&mut self, phase: Phase) {
        let thief = L::STEALS && !self.peers.all_asleep_but(self.index);
        let timeout_ns = if thief { THIEF_SLEEP_NS } else { MAX_SLEEP_NS };
        let control = &self.control;
        self.peers
            .bell(self.index)
            .sleep_unless(timeout_ns, || control.phase() != phase);
        self.patience.slept();
    }
}
