//! How much work a handler has done by the clock, whatever its probes took in between.

use crate::switch::pauses;

/// Counts the ticks that a handler has worked. Under some policies a worker is told by a probe that its request goes on, under others a thread of its own finds
/// that out, and elsewhere the request is suspended for it. So a handler that works by the clock leaves out what its probes took; otherwise it does less
/// work under one policy than under another.
///
/// ```
/// use headway_fiber::{WorkMeter, checkpoint};
///
/// let mut ticks = 0;
/// let mut meter = WorkMeter::begin(ticks);
/// while meter.done() < 10 {
///     checkpoint();
///     ticks += 1;
///     meter.look(ticks);
/// }
/// assert_eq!(ticks, 10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WorkMeter {
    done: u64,
    last: u64,
    /// The last interval without a pause.
    step: u64,
    pauses: u64,
}

impl WorkMeter {
    /// The work begins at this reading of the clock.
    #[inline(always)]
    #[must_use]
    pub fn begin(ticks: u64) -> Self {
        Self {
            done: 0,
            last: ticks,
            step: 0,
            pauses: pauses(),
        }
    }

    /// The clock reads this now, after one checkpoint at most. An interval with a pause counts as much as the one before it, since the handler's own part of it
    /// was as long.
    #[inline(always)]
    pub fn look(&mut self, ticks: u64) {
        let seen = pauses();
        if seen == self.pauses {
            self.step = ticks.wrapping_sub(self.last);
        }
        self.done += self.step;
        (self.last, self.pauses) = (ticks, seen);
    }

    /// The ticks worked so far.
    #[inline(always)]
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }
}
