//! From the receive queue into the queue that all workers share: done by one worker at a time, whoever leads.

use std::sync::Arc;

use headway_net::datapath::Tx;
use headway_net::header::Status;

use super::common::{ARRIVALS, Common};
use crate::queue::rx_waker::RxWaker;
use crate::queue::token::RequestWord;
use crate::request::intake::{BATCH, Intake};
use crate::stats::tally::ShedCause;
use crate::threads::accepting::Accepting;
use crate::threads::control::{ServerControl, ServerPhase};

/// Longest sleep at the receive queue; everything that matters wakes it earlier.
const MAX_SLEEP_NS: u64 = 1_000_000_000;

/// The receive queue as its leader sees it.
pub(super) struct LeaderIntake {
    intake: Intake,
    rx_waker: Arc<RxWaker>,
    /// The way out of refusals.
    tx: Box<dyn Tx>,
    common: Arc<Common>,
    control: Arc<ServerControl>,
    /// Most requests that wait in the shared queue; what comes on top is shed.
    queue_limit: usize,
    accepting: Accepting,
}

impl LeaderIntake {
    pub(super) fn new(
        intake: Intake,
        rx_waker: Arc<RxWaker>,
        tx: Box<dyn Tx>,
        common: Arc<Common>,
        control: Arc<ServerControl>,
        queue_limit: usize,
    ) -> Self {
        Self {
            intake,
            rx_waker,
            tx,
            common,
            control,
            queue_limit,
            accepting: Accepting::All,
        }
    }

    /// Polls once; returns how many requests came.
    #[inline]
    pub(super) fn poll(&mut self, now_ns: u64) -> usize {
        match self.control.phase() {
            ServerPhase::Running => {}
            ServerPhase::Draining => self.drain(now_ns),
            ServerPhase::Abandoning | ServerPhase::Stopped => return 0,
        }
        self.common.polled(now_ns);
        self.common.provide(BATCH, &mut self.intake.free);
        let received = match self.accepting {
            Accepting::All => self.accept(now_ns, BATCH),
            Accepting::AtMost(left) => self.accept_last(now_ns, left),
            Accepting::Nothing => self.intake.turn_away(self.rx_waker.rx(), now_ns),
        };
        self.intake.flush(&mut *self.tx, now_ns);
        received
    }

    /// Sleeps until a request may have come, or there is something else to do: work that other workers left, or the drain.
    pub(super) fn sleep(&self) {
        self.rx_waker.sleep_unless(MAX_SLEEP_NS, || {
            self.common.has_work() || self.phase_has_news()
        });
    }

    fn phase_has_news(&self) -> bool {
        match self.control.phase() {
            ServerPhase::Running => false,
            ServerPhase::Draining => self.can_drain(),
            ServerPhase::Abandoning | ServerPhase::Stopped => true,
        }
    }

    /// Whether the next poll of a drain gets on, though nothing comes.
    fn can_drain(&self) -> bool {
        match self.accepting {
            Accepting::All => true,
            Accepting::AtMost(_) => self.common.free_buffers() + self.intake.free.len() > 0,
            Accepting::Nothing => self.is_drained(),
        }
    }

    /// Whether all that was accepted is answered: every buffer is back.
    fn is_drained(&self) -> bool {
        let back = self.intake.idle_buffers() + self.common.free_buffers();
        self.accepting == Accepting::Nothing && back == self.intake.pool.len()
    }

    #[inline]
    fn accept(&mut self, now_ns: u64, max: usize) -> usize {
        let Self {
            intake,
            rx_waker,
            common,
            queue_limit,
            ..
        } = self;
        let queue = &common.queues[ARRIVALS];
        let mut came = 0;
        let received = intake.receive(rx_waker.rx(), now_ns, max, |intake, slot| {
            let class = intake.pool.get(&slot).class;
            let tally = intake.tally.class(class);
            tally.accepted.add(1);
            if queue.len() >= *queue_limit {
                tally.shed(ShedCause::QueueFull);
                return intake.refuse(slot, Status::Shed);
            }
            let refused = queue.push(RequestWord::fresh(slot));
            assert!(refused.is_none(), "the queue has room for every buffer");
            came += 1;
        });
        if came > 0 {
            common.moved(came, 0);
        }
        received
    }

    #[cold]
    fn accept_last(&mut self, now_ns: u64, left: usize) -> usize {
        let no_room = self.intake.free.is_empty();
        let count = self.accept(now_ns, left.min(BATCH));
        self.accepting.received(left, count, no_room);
        count
    }

    #[cold]
    fn drain(&mut self, now_ns: u64) {
        self.accepting.drain(self.intake.pool.len());
        if self.is_drained() {
            self.close(now_ns);
        }
    }

    /// Ends the server: gives up what waits in the shared queue, and refuses what waits at the receive queue.
    #[cold]
    pub(super) fn close(&mut self, now_ns: u64) {
        self.give_up();
        self.intake.flush(&mut *self.tx, now_ns);
        self.intake
            .turn_all_away(self.rx_waker.rx(), &mut *self.tx, now_ns);
        self.control.advance(ServerPhase::Stopped);
    }

    /// Counts the requests in the shared queue, which nobody will run.
    fn give_up(&mut self) {
        for request in self.common.drain_shared() {
            self.intake.tally.abandoned.add(1);
            // An interrupted handler, which never goes on, still borrows its buffer.
            if !request.is_suspended() {
                self.intake.free.give(request.into_slot());
            }
        }
        // So that every buffer ends with a list of its pool.
        self.common.provide(usize::MAX, &mut self.intake.free);
    }
}

/// The last worker is gone: what it left meanwhile is given up, too.
impl Drop for LeaderIntake {
    fn drop(&mut self) {
        self.give_up();
    }
}
