//! What one worker is at, and when it looks up from it.

use crate::server::NEVER;
use headway_policy::JobId;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Serving,
    /// Interrupted; it pays for that before it is free.
    Leaving,
}

/// One worker.
#[derive(Clone, Copy)]
pub(super) struct Worker {
    state: State,
    /// Whether the server still has it.
    away: bool,
    /// What it runs, unless it is idle.
    pub(super) running: JobId,
    pub(super) epoch: u64,
    /// When the present stretch of service began, what comes before it paid.
    pub(super) serving_from_ns: u64,
    /// When the request is done, if nothing comes between.
    pub(super) done_ns: u64,
    /// When its slice is over.
    pub(super) slice_over_ns: u64,
    /// When the monitor wants to look at it; or, leaving, when it has left.
    look_ns: u64,
}

impl Worker {
    pub(super) const IDLE: Self = Self {
        state: State::Idle,
        away: false,
        running: JobId(u32::MAX),
        epoch: 0,
        serving_from_ns: 0,
        done_ns: NEVER,
        slice_over_ns: NEVER,
        look_ns: NEVER,
    };

    #[inline]
    pub(super) fn begin(running: JobId, epoch: u64, serving_from_ns: u64, left_ns: u64) -> Self {
        Self {
            state: State::Serving,
            running,
            epoch,
            serving_from_ns,
            done_ns: serving_from_ns + left_ns,
            ..Self::IDLE
        }
    }

    #[inline]
    pub(super) fn slice(self, slice_ns: Option<u64>) -> Self {
        match slice_ns {
            Some(ns) => self.sliced_until(self.serving_from_ns + ns),
            None => self,
        }
    }

    #[inline]
    pub(super) fn look_after(self, look_ns: Option<u64>) -> Self {
        match look_ns {
            Some(ns) => self.looked_at_ns(self.serving_from_ns + ns),
            None => self,
        }
    }

    #[inline]
    pub(super) fn sliced_until(self, slice_over_ns: u64) -> Self {
        Self {
            slice_over_ns,
            ..self
        }
    }

    #[inline]
    pub(super) fn looked_at_ns(self, look_ns: u64) -> Self {
        Self { look_ns, ..self }
    }

    #[inline]
    pub(super) fn leaving_at(self, left_ns: u64) -> Self {
        Self {
            state: State::Leaving,
            done_ns: NEVER,
            slice_over_ns: NEVER,
            look_ns: left_ns,
            ..self
        }
    }

    /// When it looks up next.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.done_ns.min(self.slice_over_ns).min(self.look_ns)
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.state = State::Idle;
    }

    /// Whether it runs nothing.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether it is there and runs nothing.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle && !self.away
    }

    #[inline]
    pub(super) fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    #[inline]
    pub(super) fn is_leaving(&self) -> bool {
        self.state == State::Leaving
    }

    pub(super) fn go_away(&mut self) {
        self.away = true;
    }

    /// Whether it was away and is idle now that it is back.
    pub(super) fn come_back(&mut self) -> bool {
        std::mem::replace(&mut self.away, false) && self.is_idle()
    }
}
