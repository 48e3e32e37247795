//! The dispatcher's eye on what runs: when which request began, whose time has come, whom to interrupt.

use std::sync::{Arc, OnceLock};

use headway_fiber::Asker;
use headway_policy::role::{Backlog, Ingress, Monitor, Preempt, Verdict};
use headway_policy::{ClassId, JobId, WorkerId};

use super::desk::Port;
use crate::heed::{ENDLESS_NS, Heed};
use crate::pulse::{Assignment, Pulse};
use crate::tally::Tally;
use crate::token::Notice;

/// Without a monitor that wants to know at once, pulses are read this often, ns: each that changed costs a cache miss, and a
/// quantum is counted from when the request began, not from when that was seen.
const LOOK_NS: u64 = 500;

/// Who was asked to yield and goes on is asked again after so long, ns: a handler may stay long where no probe is, and it costs one store.
const AGAIN_NS: u64 = 200_000;

/// What a worker that may be interrupted shares with who does it.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) pulse: Pulse,
    /// Known once the worker's thread runs.
    pub(super) asker: OnceLock<Asker>,
}

/// A monitor and what it watches.
pub(super) struct Watch<M> {
    monitor: M,
    seats: Box<[Watched]>,
    looked_ns: u64,
    heed: Arc<Heed>,
    /// The dispatcher's own.
    tally: Arc<Tally>,
}

/// A seat, and what is known of it.
struct Watched {
    seat: Arc<Seat>,
    /// The assignment seen last.
    epoch: u64,
    job: JobId,
    class: ClassId,
    /// When it was first asked to yield; never where it is `u64::MAX`.
    asked_ns: u64,
    /// Whether it was counted as one that does not.
    unheeded: bool,
    /// Whether it was not reported ended.
    runs: bool,
    /// When to ask the monitor about it; never where it is `u64::MAX`.
    due_ns: u64,
}

/// What the workers hold.
pub(super) struct Ports<'a>(pub(super) &'a [Port]);

impl<M: Monitor> Watch<M> {
    pub(super) fn new(
        monitor: M,
        seats: &[Arc<Seat>],
        (heed, tally): (Arc<Heed>, Arc<Tally>),
    ) -> Self {
        let watched = |seat: &Arc<Seat>| Watched {
            seat: Arc::clone(seat),
            epoch: 0,
            job: JobId(u32::MAX),
            class: ClassId(0),
            asked_ns: u64::MAX,
            unheeded: false,
            runs: false,
            due_ns: u64::MAX,
        };
        Self {
            monitor,
            seats: seats.iter().map(watched).collect(),
            looked_ns: 0,
            heed,
            tally,
        }
    }

    /// The worker reported that it finished the request.
    #[inline]
    pub(super) fn finished(&mut self, now_ns: u64, worker: usize, job: JobId) {
        if M::PREEMPTS {
            let watched = &self.seats[worker];
            if watched.runs && watched.job == job && !watched.unheeded {
                let late_ns = now_ns.saturating_sub(watched.asked_ns);
                self.heed.ended(&self.tally, watched.class.0, late_ns);
            }
        }
        self.ended(now_ns, worker, job);
    }

    /// The worker reported that it finished the request, or gave it back.
    #[inline]
    pub(super) fn ended(&mut self, now_ns: u64, worker: usize, job: JobId) {
        if !M::PREEMPTS {
            return;
        }
        let watched = &mut self.seats[worker];
        if watched.runs && watched.job == job {
            watched.runs = false;
            watched.due_ns = u64::MAX;
            let id = WorkerId(worker as u16);
            return self.monitor.stopped(now_ns, id, watched.epoch);
        }
        // Its beat was not seen: it must not be taken for running when it is.
        if let Some(beat) = watched.beat().filter(|beat| beat.job == job.0) {
            watched.epoch = beat.epoch;
        }
    }

    /// Looks who began what since the last time, and interrupts whose time has come.
    #[inline]
    pub(super) fn look<I: Ingress>(&mut self, now_ns: u64, ingress: &mut I, ports: &Ports<'_>) {
        if !M::PREEMPTS || !M::POLLS && now_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        for worker in 0..self.seats.len() {
            if ports.0[worker].held > 0 {
                self.look_at(now_ns, worker, ingress, ports);
            }
        }
        if M::POLLS {
            self.poll(now_ns, ingress, ports);
        }
    }

    fn look_at<I: Ingress>(
        &mut self,
        now_ns: u64,
        worker: usize,
        ingress: &mut I,
        ports: &Ports<'_>,
    ) {
        let id = WorkerId(worker as u16);
        let Self {
            monitor,
            seats,
            heed,
            tally,
            ..
        } = self;
        let watched = &mut seats[worker];
        if let Some(beat) = watched.beat() {
            if watched.runs {
                monitor.stopped(now_ns, id, watched.epoch);
            }
            watched.epoch = beat.epoch;
            watched.job = JobId(beat.job);
            watched.runs = true;
            watched.asked_ns = u64::MAX;
            watched.unheeded = false;
            watched.due_ns = u64::MAX;
            let since_ns = beat.since_ns.min(now_ns);
            if let Some(job) = ingress.dispatched(watched.job) {
                watched.class = job.class;
                let after_ns = monitor.started(since_ns, id, job, watched.epoch, ports);
                watched.due_ns = after_ns.map_or(u64::MAX, |after_ns| since_ns + after_ns);
            }
        }
        if now_ns < watched.due_ns {
            return;
        }
        match monitor.expired(now_ns, id, ingress, ports) {
            Verdict::Preempt => {
                watched.due_ns = now_ns + AGAIN_NS;
                watched.ask(now_ns, ports.next(worker), tally);
                if watched.goes_on(now_ns) {
                    heed.goes_on(tally, watched.class.0);
                }
            }
            Verdict::Renew(for_ns) | Verdict::RenewAlone(for_ns) => {
                watched.due_ns = now_ns + for_ns;
            }
            Verdict::Leave => watched.due_ns = u64::MAX,
        }
    }

    fn poll<I: Ingress>(&mut self, now_ns: u64, ingress: &I, ports: &Ports<'_>) {
        if self
            .monitor
            .next_deadline_ns()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.monitor.tick(now_ns, ports);
        }
        while let Some(Preempt { worker, epoch }) = self.monitor.poll(now_ns, ingress, ports) {
            let next = ports.next(worker.index());
            let watched = &mut self.seats[worker.index()];
            if watched.epoch == epoch {
                watched.ask(now_ns, next, &self.tally);
            }
        }
    }

    /// Whether somebody may have to be interrupted soon: the dispatcher does not sleep then.
    #[inline]
    pub(super) fn is_wakeful(&self) -> bool {
        M::PREEMPTS && self.seats.iter().any(|watched| watched.runs)
    }
}

impl Watched {
    /// What the worker took up since the last look.
    #[inline]
    fn beat(&self) -> Option<Assignment> {
        self.seat
            .pulse
            .look()
            .filter(|beat| beat.epoch != self.epoch)
    }

    /// Asks the request that runs to yield.
    #[inline]
    fn ask(&mut self, now_ns: u64, next: Option<Notice>, tally: &Tally) {
        if self.asked_ns == u64::MAX {
            self.asked_ns = now_ns;
            tally.class(self.class.0).preemptions_asked.add(1);
        }
        if let Some(asker) = self.seat.asker.get() {
            asker.ask_with(self.epoch, next.map_or(0, Notice::into_word));
        }
    }

    /// Whether it has not heeded that for so long that it may never; true once.
    #[inline]
    fn goes_on(&mut self, now_ns: u64) -> bool {
        let endless = !self.unheeded && now_ns.saturating_sub(self.asked_ns) > ENDLESS_NS;
        self.unheeded |= endless;
        endless
    }
}

impl Ports<'_> {
    /// What is behind the request that the worker runs.
    #[inline]
    fn next(&self, worker: usize) -> Option<Notice> {
        let port = &self.0[worker];
        port.jobs.notice(port.held)
    }
}

/// Workers of a dispatcher share no queue and tell the others nothing.
impl Backlog for Ports<'_> {
    fn workers(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.0[worker.index()].held.saturating_sub(1)
    }

    fn shared_counters(&self, _queue: usize) -> (u64, u64) {
        (0, 0)
    }

    fn congested(&self) -> u64 {
        0
    }

    fn short_ns(&self, _worker: WorkerId) -> u64 {
        0
    }
}
