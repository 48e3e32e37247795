//! Which of the requests that arrive are still accepted, from the start of a server to the end of its drain.

/// Whether requests are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepting {
    /// All of them.
    All,
    /// Draining: those that were sent before, at most this many.
    AtMost(usize),
    /// None: they are refused.
    Nothing,
}

impl Accepting {
    /// The drain begins, or goes on: what was sent before still fits into `slots` buffers.
    pub(crate) fn drain(&mut self, slots: usize) {
        if *self == Self::All {
            *self = Self::AtMost(slots);
        }
    }

    /// A poll that a drain allowed `left` requests brought `count`. One that brought none says that what was sent before is in, unless it
    /// had `no_room`.
    pub(crate) fn received(&mut self, left: usize, count: usize, no_room: bool) {
        let left = left - count;
        let done = left == 0 || (count == 0 && !no_room);
        *self = if done {
            Self::Nothing
        } else {
            Self::AtMost(left)
        };
    }
}
