//! Requests that end after they were to yield: whose fault that was.

use headway_policy::ClassId;

use crate::stats::overruns::{ENDLESS_NS, Overruns, PROMPT_NS};
use crate::stats::own_time::OwnTime;
use crate::stats::tally::Tally;

/// A request that ended after it was to yield.
pub(crate) struct EndedLate {
    pub(crate) class: ClassId,
    /// For how long it was to have yielded, ns.
    pub(crate) late_ns: u64,
    /// Whether another thread asked it to, and counted that; else its slice was over.
    pub(crate) was_asked: bool,
    /// How long this run took, ns.
    pub(crate) ran_ns: u64,
    /// For how much of this run its thread had a core, ns; `None` where that was not measured.
    pub(crate) own_ns: Option<u64>,
}

impl EndedLate {
    /// For how long its thread ran on, ns: without the time that others took from it. `None` where that was not measured.
    fn overran_ns(&self) -> Option<u64> {
        let taken_ns = self.ran_ns.saturating_sub(self.own_ns?);
        Some(self.late_ns.saturating_sub(taken_ns))
    }
}

/// A thread's watch over the classes whose requests end late.
pub(super) struct LatenessWatch {
    /// The time that this thread has had a core.
    own_time: OwnTime,
    /// Classes of which a request was late: the next one's own time is measured.
    suspects: Vec<ClassId>,
}

impl LatenessWatch {
    /// The calling thread's, of requests of so many classes.
    pub(super) fn new(classes: usize) -> Self {
        Self {
            own_time: OwnTime::of_current(),
            suspects: Vec::with_capacity(classes),
        }
    }

    /// Whether some class is under suspicion.
    #[inline]
    pub(super) fn suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Counts a request that ended late, if its own thread was what made it late. Nothing is known of that for the first late request of its
    /// class, which puts the class under suspicion.
    #[inline]
    pub(super) fn count(&mut self, overruns: &Overruns, tally: &Tally, ended: &EndedLate) {
        if !ended.was_asked {
            tally.class(ended.class.0).preemptions_asked.add(1);
        }
        if ended.late_ns > PROMPT_NS {
            self.judge(overruns, tally, ended);
        }
    }

    #[cold]
    fn judge(&mut self, overruns: &Overruns, tally: &Tally, ended: &EndedLate) {
        let EndedLate {
            class, was_asked, ..
        } = *ended;
        let is_guilty = match ended.overran_ns() {
            // Whoever asked watches the thread, and counted that.
            Some(overran_ns) if was_asked && overran_ns > ENDLESS_NS => true,
            Some(overran_ns) => overruns.ended(tally, class.0, overran_ns),
            None => true,
        };
        let is_known =
            self.suspects.contains(&class) || self.suspects.len() == self.suspects.capacity();
        if is_guilty && !is_known {
            self.suspects.push(class);
        }
    }

    /// The thread's own time, ns, before it runs a request of this class, if that is under suspicion; it no longer is.
    #[cold]
    pub(super) fn acquit(&mut self, class: ClassId) -> Option<u64> {
        let place = self.suspects.iter().position(|suspect| *suspect == class)?;
        self.suspects.swap_remove(place);
        self.own_time.read_ns()
    }

    /// The thread's own time since it was `before_ns`.
    #[cold]
    pub(super) fn own_time_since(&self, before_ns: u64) -> Option<u64> {
        let now_ns = self.own_time.read_ns()?;
        Some(now_ns.saturating_sub(before_ns))
    }
}
