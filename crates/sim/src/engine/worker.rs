//! The state of one worker, and the time of its next event.

use crate::server::NEVER;
use headway_policy::JobId;

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Idle,
    Serving,
    /// Its request was interrupted, and the worker pays for it before it is free.
    Leaving,
}

/// Whether the server has a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerPresence {
    Present,
    /// Nothing more is sent to it. It finishes its request, and the requests in its queue unless other workers take them.
    Removed,
    /// It lost its core at once. The requests in its queue stay there.
    Revoked,
}

/// A request that a worker begins to serve. Durations count from `from_ns`.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) running: JobId,
    pub(super) from_ns: u64,
    /// Remaining service if nothing interrupts it.
    pub(super) left_ns: u64,
    /// When the worker interrupts itself.
    pub(super) slice_ns: Option<u64>,
    /// When the monitor checks the worker.
    pub(super) look_ns: Option<u64>,
}

/// A request that the dispatcher itself is running.
#[derive(Clone, Copy)]
pub(super) struct OnDispatcher {
    pub(super) job: JobId,
    pub(super) stretch_ns: u64,
    pub(super) until_ns: u64,
}

/// One worker.
#[derive(Clone, Copy)]
pub(super) struct SimWorker {
    state: WorkerState,
    presence: WorkerPresence,
    /// The request that it runs, unless it is idle.
    pub(super) running: JobId,
    pub(super) epoch: u64,
    /// When the present slice of service began, after the costs of starting it.
    pub(super) serving_from_ns: u64,
    /// When the request is done if nothing interrupts it.
    pub(super) done_ns: u64,
    /// When its slice is over.
    pub(super) slice_over_ns: u64,
    /// When the monitor checks the worker; in the state `Leaving`, when it has left the request.
    pub(super) look_ns: u64,
    /// Length of the slices or quanta that pass without an event while no other request waits at the worker, ns; 0: none pass so.
    alone_step_ns: u64,
    /// Start of the first of these steps.
    alone_from_ns: u64,
}

impl SimWorker {
    pub(super) const IDLE: Self = Self {
        state: WorkerState::Idle,
        presence: WorkerPresence::Present,
        running: JobId(u32::MAX),
        epoch: 0,
        serving_from_ns: 0,
        done_ns: NEVER,
        slice_over_ns: NEVER,
        look_ns: NEVER,
        alone_step_ns: 0,
        alone_from_ns: 0,
    };

    /// Begins to serve a request.
    #[inline]
    pub(super) fn begin(&mut self, start: Start) {
        let from_ns = start.from_ns;
        self.state = WorkerState::Serving;
        self.running = start.running;
        self.epoch += 1;
        self.serving_from_ns = from_ns;
        self.done_ns = from_ns + start.left_ns;
        self.slice_over_ns = start.slice_ns.map_or(NEVER, |ns| from_ns + ns);
        self.look_ns = start.look_ns.map_or(NEVER, |ns| from_ns + ns);
        self.alone_step_ns = 0;
    }

    /// Goes on without events, in steps from now on, until another request waits at the worker.
    #[inline]
    pub(super) fn go_on_alone(&mut self, now_ns: u64, step_ns: u64) {
        self.alone_from_ns = now_ns;
        self.alone_step_ns = step_ns;
    }

    /// Another request waits at the worker now. Returns the end of the present step if the worker goes on in steps; a step that
    /// ends at this very time has ended before.
    #[inline]
    pub(super) fn has_company(&mut self, now_ns: u64) -> Option<u64> {
        let step_ns = std::mem::take(&mut self.alone_step_ns);
        let steps = (now_ns - self.alone_from_ns).checked_div(step_ns)?;
        Some(self.alone_from_ns + (steps + 1) * step_ns)
    }

    /// Stops serving; the worker is free at `left_ns`, after the cost of stopping.
    #[inline]
    pub(super) fn leave_at(&mut self, left_ns: u64) {
        self.state = WorkerState::Leaving;
        self.done_ns = NEVER;
        self.slice_over_ns = NEVER;
        self.look_ns = left_ns;
        self.alone_step_ns = 0;
    }

    /// When the worker next looks for arrivals: once every `look_ns`, and at its request's end.
    #[inline]
    pub(super) fn looks_up_ns(&self, now_ns: u64, look_ns: u64) -> u64 {
        if self.state != WorkerState::Serving {
            return self.next_ns();
        }
        let slices = now_ns.saturating_sub(self.serving_from_ns) / look_ns + 1;
        self.done_ns.min(self.serving_from_ns + slices * look_ns)
    }

    /// When the worker's next event is.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.done_ns.min(self.slice_over_ns).min(self.look_ns)
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.state = WorkerState::Idle;
        self.alone_step_ns = 0;
    }

    /// Whether the worker runs no request.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.state == WorkerState::Idle
    }

    /// Whether the worker is present and runs no request.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.state == WorkerState::Idle && self.presence == WorkerPresence::Present
    }

    #[inline]
    pub(super) fn is_serving(&self) -> bool {
        self.state == WorkerState::Serving
    }

    #[inline]
    pub(super) fn is_leaving(&self) -> bool {
        self.state == WorkerState::Leaving
    }

    /// Whether the worker runs no request and may begin one. A removed one may where no other takes the requests in its queue.
    #[inline]
    pub(super) fn may_begin(&self, others_take: bool) -> bool {
        let is_there = match self.presence {
            WorkerPresence::Present => true,
            WorkerPresence::Removed => !others_take,
            WorkerPresence::Revoked => false,
        };
        is_there && self.state == WorkerState::Idle
    }

    #[inline]
    pub(super) fn is_removed(&self) -> bool {
        self.presence == WorkerPresence::Removed
    }

    /// Marks the worker as removed. Returns whether it was present and idle.
    pub(super) fn remove(&mut self) -> bool {
        let was_idle = self.is_idle();
        self.presence = WorkerPresence::Removed;
        was_idle
    }

    /// Marks the worker as revoked. Returns whether it was present and idle.
    pub(super) fn revoke(&mut self) -> bool {
        let was_idle = self.is_idle();
        self.presence = WorkerPresence::Revoked;
        was_idle
    }

    /// Marks the worker as present. Returns whether it was away and is idle now.
    pub(super) fn come_back(&mut self) -> bool {
        let before = std::mem::replace(&mut self.presence, WorkerPresence::Present);
        before != WorkerPresence::Present && self.is_idle()
    }
}
