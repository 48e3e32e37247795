//! The dispatcher: completions in, requests in, decisions out.

use std::sync::Arc;

use headway_machine::Clock;
use headway_net::datapath::Tx;
use headway_net::header::Status;
use headway_net::pool::SlotId;
use headway_policy::server::role::{Dispatch, Ingress, Monitor, Shed};
use headway_policy::{BitSet, WorkerId};

use super::presence::Presence;
use super::rack::{RackSide, Returning};
use super::waiting::{Waiting, describe};
use super::watch::{CentralWatch, HeldRequests, Look};
use super::worker_link::DispatcherEnd;
use crate::queue::rx_waker::RxWaker;
use crate::queue::token::{RequestWord, job_of};
use crate::request::intake::{BATCH, Intake};
use crate::stats::tally::ShedCause;
use crate::threads::accepting::Accepting;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::rules::RulesReceiver;
use headway_sync::park::announce;

/// Longest sleep at the receive queue; everything that matters wakes it earlier.
const MAX_SLEEP_NS: u64 = 1_000_000_000;

/// The parts of a system whose rules a dispatcher adopts.
pub(super) struct DispatcherRules<I, M> {
    pub(super) ingress: I,
    pub(super) monitor: M,
}

/// What a [`Dispatcher`] is made of.
pub(super) struct DispatcherParts<I, M> {
    pub(super) ingress: I,
    pub(super) rules: RulesReceiver<DispatcherRules<I, M>>,
    /// Of a server behind a rack's switch.
    pub(super) rack: Option<Box<RackSide>>,
    /// Of a server whose workers come and go.
    pub(super) presence: Option<Box<Presence>>,
    pub(super) watch: CentralWatch<M>,
    pub(super) intake: Intake,
    pub(super) rx_waker: Arc<RxWaker>,
    pub(super) tx: Box<dyn Tx>,
    pub(super) control: Arc<ServerControl>,
    pub(super) clock: Clock,
    /// One for each worker.
    pub(super) links: Vec<DispatcherEnd>,
}

/// One dispatcher's state; [`step`](Dispatcher::step) is a turn of its loop.
pub(super) struct Dispatcher<I, M> {
    pub(super) ingress: I,
    rules: RulesReceiver<DispatcherRules<I, M>>,
    rack: Option<Box<RackSide>>,
    presence: Option<Box<Presence>>,
    watch: CentralWatch<M>,
    intake: Intake,
    rx_waker: Arc<RxWaker>,
    tx: Box<dyn Tx>,
    control: Arc<ServerControl>,
    clock: Clock,
    pub(super) now_ns: u64,
    /// When it last polled for arrivals.
    polled_ns: u64,
    /// The requests that wait, by job.
    pub(super) waiting: Box<[Option<Waiting>]>,
    links: Box<[DispatcherEnd]>,
    /// Whoever was given a request and not woken since.
    given: BitSet,
    accepting: Accepting,
    /// Buffers that it receives into: a drain takes no more requests than these.
    buffers: usize,
    /// Whether it answered all that it accepted, and said so.
    drained: bool,
    /// Accepted and not yet answered.
    in_flight: usize,
    /// Workers in use.
    workers: usize,
    /// Of the plan, as far as published.
    revisions: u64,
}

impl<I: Ingress, M: Monitor> Dispatcher<I, M> {
    pub(super) fn new(parts: DispatcherParts<I, M>) -> Self {
        let slots = parts.intake.pool.len();
        let workers = parts.links.len();
        let buffers = parts.intake.free.len();
        Self {
            ingress: parts.ingress,
            rules: parts.rules,
            rack: parts.rack,
            presence: parts.presence,
            watch: parts.watch,
            intake: parts.intake,
            rx_waker: parts.rx_waker,
            tx: parts.tx,
            control: parts.control,
            clock: parts.clock,
            now_ns: 0,
            polled_ns: 0,
            waiting: (0..slots).map(|_| None).collect(),
            links: parts.links.into(),
            given: BitSet::EMPTY,
            accepting: Accepting::All,
            buffers,
            drained: false,
            in_flight: 0,
            workers,
            revisions: 0,
        }
    }

    /// One turn: arrivals, completions, decisions, interruptions, refusals. Returns how much there was to do.
    #[inline]
    pub(super) fn step(&mut self) -> usize {
        self.step_polling_after(0)
    }

    /// The same, but receives only where the last poll is `interval_ns` old.
    #[inline]
    pub(super) fn step_polling_after(&mut self, interval_ns: u64) -> usize {
        self.apply_control();
        if self.control.phase() == ServerPhase::Stopped {
            return 0;
        }
        // Leaders on different cores may read clocks that differ by some cycles; roles see time grow.
        self.now_ns = self.clock.now_ns().max(self.now_ns);
        // Arrivals first: a worker that turns out to be free gets its next request without an empty poll, a system
        // call, in between, and yet the decision knows all that came until a moment ago.
        let polls = self.now_ns >= self.polled_ns + interval_ns;
        let received = if polls { self.receive() } else { 0 };
        let collected = self.collect();
        let dispatched = self.dispatch();
        self.interrupt();
        self.flush();
        self.publish_plan();
        if let Some(presence) = &mut self.presence {
            presence.tell(dispatched, self.ingress.waiting());
        }
        if let Some(rack) = &self.rack {
            rack.has(self.in_flight);
        }
        collected + received + dispatched
    }

    /// Hears of what workers reported and shows the arbiter what waits, but receives nothing and gives nobody anything: for a worker that goes, which
    /// may be the last one with a core.
    #[cold]
    pub(super) fn hear(&mut self) {
        if self.control.phase() == ServerPhase::Stopped {
            return;
        }
        self.now_ns = self.clock.now_ns().max(self.now_ns);
        self.collect();
        if let Some(presence) = &mut self.presence {
            presence.tell(0, self.ingress.waiting());
        }
    }

    /// When the last turn began.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Wakes those that were given something since the last call, but not `me`.
    #[inline]
    pub(super) fn wake_given(&mut self, me: Option<usize>, wake: impl Fn(usize)) {
        if let Some(me) = me {
            self.given.remove(me);
        }
        if self.given.is_empty() {
            return;
        }
        announce();
        while let Some(worker) = self.given.first() {
            self.given.remove(worker);
            wake(worker);
        }
    }

    /// Sleeps until there may be something to do.
    pub(super) fn sleep(&self) {
        self.rx_waker.sleep_unless(MAX_SLEEP_NS, || self.has_news());
    }

    fn has_news(&self) -> bool {
        let drains = self.control.phase() != ServerPhase::Running && self.can_drain();
        let stops = self.control.phase() > ServerPhase::Draining;
        let unpublished = self.revisions != self.ingress.revisions();
        drains
            || stops
            || unpublished
            || self.presence.is_none() && self.workers != self.control.workers()
            || self.rules.are_new(&self.control)
            || self
                .rack
                .as_ref()
                .is_some_and(|rack| rack.has_news(&self.control))
            || self
                .links
                .iter()
                .any(|link| link.held > 0 && !link.done.is_empty())
    }

    /// Whether the next turn of a drain gets on, though nobody reports anything.
    fn can_drain(&self) -> bool {
        match self.accepting {
            Accepting::All => true,
            Accepting::AtMost(_) => !self.intake.free.is_empty(),
            Accepting::Nothing => self.in_flight == 0 && !self.drained,
        }
    }

    #[inline]
    fn collect(&mut self) -> usize {
        let mut count = 0;
        for worker in 0..self.links.len() {
            while self.links[worker].held > 0
                && let Some(request) = self.links[worker].done.receive()
            {
                self.links[worker].held -= 1;
                count += 1;
                if request.is_suspended() {
                    self.yielded(worker, request);
                } else {
                    self.finished(worker, request);
                }
            }
        }
        count
    }

    #[inline]
    fn finished(&mut self, worker: usize, request: RequestWord) {
        let (job, note, slot) = (request.job(), request.note(), request.into_slot());
        self.watch.ended(self.now_ns, worker, job);
        self.ingress
            .finished(self.now_ns, WorkerId(worker as u16), job, note);
        self.intake.free.give(slot);
        self.in_flight -= 1;
    }

    fn yielded(&mut self, worker: usize, request: RequestWord) {
        let (id, note, slot) = (request.job(), request.note(), request.into_slot());
        self.watch.ended(self.now_ns, worker, id);
        let known = self.ingress.dispatched(id);
        let mut job = *known.expect("an ingress whose requests are interrupted knows them");
        job.attained_ns = note.max(job.attained_ns);
        self.waiting[id.index()] = Some(Waiting {
            slot,
            suspended: true,
        });
        self.ingress
            .yielded(self.now_ns, WorkerId(worker as u16), job);
    }

    /// The request was run to its end by the dispatcher itself.
    pub(super) fn worked_off(&mut self, slot: SlotId) {
        self.intake.free.give(slot);
        self.in_flight -= 1;
    }

    /// Who has run for long enough makes way for what waits.
    #[inline]
    fn interrupt(&mut self) {
        let Self {
            ingress,
            watch,
            links,
            now_ns,
            ..
        } = self;
        watch.look(*now_ns, ingress, &HeldRequests(links));
    }

    /// Asks the monitor about the assignment that this worker runs.
    #[inline]
    pub(super) fn look_at(&mut self, worker: usize, epoch: u64) -> Look {
        let Self {
            ingress,
            watch,
            links,
            now_ns,
            ..
        } = self;
        watch.look_at_own(*now_ns, worker, epoch, ingress, &HeldRequests(links))
    }

    /// Whether somebody who runs may have to be interrupted for what waits: no time to sleep.
    #[inline]
    pub(super) fn is_wakeful(&self) -> bool {
        // A worker may not have begun what it was given: its quantum starts when the dispatcher may be asleep.
        M::PREEMPTS
            && self.links.iter().any(|link| link.held > 0)
            && (self.ingress.waiting() > 0 || self.links.iter().any(|link| link.held > 1))
    }

    #[inline]
    fn receive(&mut self) -> usize {
        self.polled_ns = self.now_ns;
        if let Some(presence) = &self.presence {
            presence.polled(self.now_ns);
        }
        match self.accepting {
            Accepting::All => self.accept(BATCH),
            Accepting::AtMost(left) => self.accept_last(left),
            Accepting::Nothing => self.turn_away(),
        }
    }

    #[inline]
    fn accept(&mut self, max: usize) -> usize {
        let Self {
            ingress,
            rack,
            intake,
            rx_waker,
            tx,
            waiting,
            in_flight,
            now_ns,
            ..
        } = self;
        let queued = ingress.waiting();
        intake.receive(rx_waker.rx(), *now_ns, max, |intake, slot| {
            let (id, slot) = job_of(slot);
            let job = describe(id, intake.pool.get(&slot));
            intake.tally.class(job.class.0).accepted.add(1);
            if let Some(rack) = rack {
                let others_came = ingress.waiting() > queued;
                let returning = Returning {
                    ingress,
                    intake,
                    waiting,
                    in_flight,
                    tx: &mut **tx,
                    now_ns: *now_ns,
                };
                if !rack.admits(&slot, others_came, returning) {
                    intake.tally.class(job.class.0).shed(ShedCause::Clone);
                    intake.tally.clones_dropped.add(1);
                    return intake.refuse(slot, Status::Shed);
                }
            }
            match ingress.arrived(*now_ns, job) {
                Ok(()) => {
                    waiting[id.index()] = Some(Waiting {
                        slot,
                        suspended: false,
                    });
                    *in_flight += 1;
                }
                Err(Shed) => {
                    intake.tally.class(job.class.0).shed(ShedCause::QueueFull);
                    intake.refuse(slot, Status::Shed);
                }
            }
        })
    }

    #[inline]
    fn dispatch(&mut self) -> usize {
        let mut count = 0;
        while let Some(Dispatch { worker, job }) = self.ingress.poll(self.now_ns) {
            let waited = self.waiting[job.index()].take();
            let Waiting { slot, suspended } = waited.expect("a policy dispatches what waits, once");
            let link = &mut self.links[worker.index()];
            if suspended {
                link.jobs.send_suspended(slot, 0);
            } else {
                link.jobs.send(slot, 0);
            }
            link.held += 1;
            self.given.insert(worker.index());
            count += 1;
        }
        count
    }

    #[inline]
    fn flush(&mut self) {
        self.intake.flush(&mut *self.tx, self.now_ns);
    }

    #[inline]
    fn publish_plan(&mut self) {
        let revisions = self.ingress.revisions();
        if revisions != self.revisions && self.control.try_publish(revisions, self.ingress.plan()) {
            self.revisions = revisions;
        }
    }

    /// Follows the phase, the rules and the number of workers that the server's owner asks for.
    #[inline]
    fn apply_control(&mut self) {
        let Self { ingress, watch, .. } = self;
        self.rules.adopt(&self.control, |fresh| {
            ingress.adopt(&fresh.ingress);
            watch.adopt(&fresh.monitor);
            true
        });
        let rack = self.rack.as_ref();
        if rack.is_some_and(|rack| rack.has_news(&self.control)) {
            self.take_order();
        }
        if let Some(presence) = &mut self.presence {
            presence.follow(self.now_ns, &self.control, &mut self.ingress);
        } else if self.control.workers() != self.workers {
            self.resize();
        }
        match self.control.phase() {
            ServerPhase::Running => {}
            ServerPhase::Draining => self.drain(),
            ServerPhase::Abandoning => self.abandon(),
            ServerPhase::Stopped => {}
        }
    }

    #[cold]
    fn take_order(&mut self) {
        let Self {
            ingress,
            rack,
            intake,
            waiting,
            in_flight,
            tx,
            now_ns,
            control,
            ..
        } = self;
        let Some(rack) = rack else {
            return;
        };
        let returning = Returning {
            ingress,
            intake,
            waiting,
            in_flight,
            tx: &mut **tx,
            now_ns: *now_ns,
        };
        rack.take_order(control, returning);
    }

    #[cold]
    fn resize(&mut self) {
        let wanted = self.control.workers();
        for worker in wanted..self.workers {
            self.ingress
                .worker_removed(self.now_ns, WorkerId(worker as u16));
        }
        for worker in self.workers..wanted {
            self.ingress
                .worker_added(self.now_ns, WorkerId(worker as u16));
        }
        self.workers = wanted;
    }

    #[cold]
    fn drain(&mut self) {
        self.accepting.drain(self.buffers);
        if self.accepting == Accepting::Nothing && self.in_flight == 0 && !self.drained {
            self.drained = true;
            self.refuse_waiting();
            self.control.drained();
        }
    }

    /// Requests handed out already are the workers' to finish or to give up.
    #[cold]
    fn abandon(&mut self) {
        self.collect();
        for Waiting { slot, suspended } in self.waiting.iter_mut().filter_map(Option::take) {
            self.intake.tally.abandoned.add(1);
            // An interrupted handler, which never goes on, still borrows its buffer.
            if !suspended {
                self.intake.free.give(slot);
            }
        }
        self.refuse_waiting();
        // Nothing that it took is left to answer or to give up. Other dispatchers end by themselves.
        self.control.advance(ServerPhase::Stopped);
    }

    /// The server has stopped: what came since this dispatcher drained, while others still did, is refused.
    #[cold]
    pub(super) fn close(&mut self) {
        if self.drained {
            self.refuse_waiting();
        }
        let uncollected: usize = self.links.iter_mut().map(DispatcherEnd::end).sum();
        self.intake.tally.abandoned.add(uncollected as u64);
    }

    /// Refuses what waits at the receive queue.
    fn refuse_waiting(&mut self) {
        self.flush();
        self.intake
            .turn_all_away(self.rx_waker.rx(), &mut *self.tx, self.now_ns);
    }

    #[cold]
    fn accept_last(&mut self, left: usize) -> usize {
        let no_room = self.intake.free.is_empty();
        let count = self.accept(left.min(BATCH));
        self.accepting.received(left, count, no_room);
        count
    }

    #[cold]
    fn turn_away(&mut self) -> usize {
        self.intake.turn_away(self.rx_waker.rx(), self.now_ns)
    }
}
