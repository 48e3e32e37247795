//! Records which request ran where and when.
//!
//! The engine holds a tape only for an experiment with a trace window; otherwise it pays one branch
//! where a request stops running.

use crate::server::SimRequest;
use headway_policy::JobId;
use headway_report::schedule::{Runner, Slice};
use std::ops::Range;

/// The slices that touch a window of time.
#[derive(Debug)]
pub(crate) struct Tape {
    window: Range<u64>,
    slices: Vec<Slice>,
    /// By slot: when the request in it was last interrupted.
    interrupted_ns: Vec<Option<u64>>,
}

impl Tape {
    pub(crate) fn new(window: Range<u64>) -> Self {
        Self {
            window,
            slices: Vec::new(),
            interrupted_ns: Vec::new(),
        }
    }

    pub(crate) fn into_slices(self) -> Vec<Slice> {
        self.slices
    }

    /// Records that a request stopped running.
    pub(crate) fn stopped(
        &mut self,
        id: JobId,
        request: &SimRequest,
        runner: Runner,
        ran: Range<u64>,
        done: bool,
    ) {
        // The request was interrupted in the instant it began: its wait goes on.
        if ran.is_empty() && !done {
            return;
        }
        let slot = id.index();
        if self.interrupted_ns.len() <= slot {
            self.interrupted_ns.resize(slot + 1, None);
        }
        let before_ns = self.interrupted_ns[slot].take();
        if !done {
            self.interrupted_ns[slot] = Some(ran.end);
        }
        let waited_from_ns = before_ns.unwrap_or(request.arrived_ns);
        if waited_from_ns < self.window.end && ran.end > self.window.start {
            self.slices.push(Slice {
                request: request.tag,
                class: usize::from(request.class),
                service_ns: request.service_ns,
                runner,
                waited_from_ns,
                from_ns: ran.start,
                to_ns: ran.end,
                resumed: before_ns.is_some(),
                done,
            });
        }
    }
}
