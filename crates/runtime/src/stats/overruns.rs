//! Requests that run on although they were asked to yield: counted by class, and named once.
//!
//! A handler without probes under a policy that interrupts is served as if the policy did not. Nothing else shows that, so the server
//! writes one line to standard error, as it does for a stack overflow: off the path of requests that yield.
//!
//! A request that the machine stopped is late as well, and meets no probe meanwhile. So lateness alone is a suspicion: a request overruns only
//! if its thread itself [had a core](crate::stats::own_time) after it was to yield.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headway_fiber::LateRuns;
use headway_machine::stderr;

use crate::stats::tally::Tally;

/// A request with probes yields within microseconds; one whose thread computes for longer than this after it was to yield overruns.
pub(crate) const PROMPT_NS: u64 = 20_000;

/// A single request whose thread computes on for this long names its class: it may never end.
pub(crate) const ENDLESS_NS: u64 = 100_000_000;

/// The overruns that all threads of a server counted, and the classes it has named.
pub(crate) struct Overruns {
    tallies: Box<[Arc<Tally>]>,
    classes: Box<[NamedClass]>,
    /// Whether requests say where they may be interrupted: those that say nothing are right.
    feedback: bool,
}

struct NamedClass {
    name: String,
    is_named: AtomicBool,
}

impl Overruns {
    pub(crate) fn new(tallies: &[Arc<Tally>], classes: &[String], feedback: bool) -> Self {
        Self {
            tallies: tallies.into(),
            classes: classes
                .iter()
                .map(|name| NamedClass {
                    name: name.clone(),
                    is_named: AtomicBool::new(false),
                })
                .collect(),
            feedback,
        }
    }

    /// The number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// A request ended without yielding, and its thread had a core for `overran_ns` after it was to. `tally` is the calling thread's. Returns
    /// whether it counts as an overrun.
    #[cold]
    pub(crate) fn ended(&self, tally: &Tally, class: u16, overran_ns: u64) -> bool {
        let overran = overran_ns > PROMPT_NS;
        if overran {
            let longest = &tally.class(class).longest_gap_ns;
            longest.set(longest.get().max(overran_ns));
            self.count(tally, class, LateRuns::lack_probes);
        }
        overran
    }

    /// A request goes on whose thread had a core for [long](ENDLESS_NS) after it was asked to yield.
    #[cold]
    pub(crate) fn still_runs(&self, tally: &Tally, class: u16) {
        self.count(tally, class, |_| true);
    }

    /// Counts an overrun, and names the class once: where these are enough, and none of its requests yielded.
    #[cold]
    fn count(&self, tally: &Tally, class: u16, are_enough: fn(LateRuns) -> bool) {
        tally.class(class).overruns.add(1);
        let (mut overruns, mut yielded, mut answered, mut cpu_ns) = (0_u64, 0, 0_u64, 0);
        for tally in &self.tallies {
            let tally = tally.class(class);
            overruns += tally.overruns.get();
            yielded += tally.preemptions.get();
            answered += tally.answered.get();
            cpu_ns += tally.cpu_ns();
        }
        let named = &self.classes[usize::from(class)];
        let runs = LateRuns {
            late: overruns,
            in_time: answered,
        };
        // Handlers of shorts end before they could yield; they meet stops of the machine all day.
        let is_short = answered > 0 && cpu_ns <= answered.saturating_mul(PROMPT_NS);
        let says_nothing = yielded == 0 && !is_short && !self.feedback;
        let tell = are_enough(runs) && says_nothing;
        if tell && !named.is_named.swap(true, Ordering::Relaxed) {
            // A suspended request may hold the lock of the standard library's.
            stderr::write_line(&format!(
                "headway: requests of class {} do not yield: {overruns} went on long after the policy asked them to, and none \
                 yielded. Their handler meets no probe: build it with Headway's pass (`cargo headway build`, headway-cc), mark \
                 its loops `#[preemptible]`, or call checkpoint() in them; or choose a policy that interrupts nobody, such as darc",
                named.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a class is named of which so many requests of `cpu_ns` each were answered, the last few of them late.
    fn is_named(answered: u64, cpu_ns: u64, late: u64) -> bool {
        let tally = Arc::new(Tally::new(1));
        let overruns = Overruns::new(&[Arc::clone(&tally)], &["lookup".to_owned()], false);
        (0..answered).for_each(|_| tally.class(0).answers(cpu_ns));
        for _ in 0..late {
            overruns.ended(&tally, 0, PROMPT_NS + 1);
        }
        assert_eq!(tally.class(0).overruns.get(), late);
        overruns.classes[0].is_named.load(Ordering::Relaxed)
    }

    #[test]
    fn a_class_is_named_for_its_handler_and_not_for_stops_of_the_machine() {
        let long_ns = 2 * PROMPT_NS;
        assert!(is_named(LateRuns::ENOUGH, long_ns, LateRuns::ENOUGH));
        assert!(
            !is_named(LateRuns::ENOUGH, long_ns, LateRuns::ENOUGH - 1),
            "a stop may explain it"
        );
        assert!(
            !is_named(1_000_000, long_ns, LateRuns::ENOUGH),
            "nearly all end in time"
        );
        assert!(
            !is_named(LateRuns::ENOUGH, PROMPT_NS / 2, LateRuns::ENOUGH),
            "a short ends before it could yield"
        );
    }
}
