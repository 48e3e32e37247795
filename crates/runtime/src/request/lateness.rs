//! Requests that end after they were to yield: whose fault that was.

use headway_fiber::{LateRun, Suspects};
use headway_policy::ClassId;

use crate::stats::overruns::{ENDLESS_NS, Overruns, PROMPT_NS};
use crate::stats::own_time::OwnTime;
use crate::stats::tally::Tally;

/// A request that ended after it was to yield.
pub(crate) struct EndedLate {
    pub(crate) class: ClassId,
    /// Whether another thread asked it to, and counted that; else its slice was over.
    pub(crate) was_asked: bool,
    pub(crate) run: LateRun,
}

/// A thread's watch over the classes whose requests end late.
pub(super) struct LatenessWatch(Suspects<OwnTime>);

impl LatenessWatch {
    /// The calling thread's, of requests of so many classes.
    pub(super) fn new(classes: usize) -> Self {
        Self(Suspects::new(OwnTime::of_current(), classes))
    }

    /// Whether some class is under suspicion.
    #[inline]
    pub(super) fn suspects(&self) -> bool {
        !self.0.is_empty()
    }

    /// Counts a request that ended late, if its own thread was what made it late. Nothing is known of that for the first late request of its
    /// class, which puts the class under suspicion.
    #[inline]
    pub(super) fn count(&mut self, overruns: &Overruns, tally: &Tally, ended: &EndedLate) {
        if !ended.was_asked {
            tally.class(ended.class.0).preemptions_asked.add(1);
        }
        if ended.run.late_ns > PROMPT_NS {
            self.judge(overruns, tally, ended);
        }
    }

    #[cold]
    fn judge(&mut self, overruns: &Overruns, tally: &Tally, ended: &EndedLate) {
        let EndedLate {
            class,
            was_asked,
            run,
        } = ended;
        let is_guilty = match run.overran_ns() {
            // Whoever asked watches the thread, and counted that.
            Some(overran_ns) if *was_asked && overran_ns > ENDLESS_NS => true,
            Some(overran_ns) => overruns.ended(tally, class.0, overran_ns),
            None => true,
        };
        if is_guilty {
            self.0.suspect(class.0);
        }
    }

    /// The thread's own time, ns, before it runs a request of this class, if that is under suspicion; it no longer is.
    #[cold]
    pub(super) fn acquit(&mut self, class: ClassId) -> Option<u64> {
        self.0.acquit(class.0)
    }

    /// The thread's own time since it was `before_ns`.
    #[cold]
    pub(super) fn own_time_since(&self, before_ns: u64) -> Option<u64> {
        self.0.own_time_since(before_ns)
    }
}
