//! Requests that do not yield when they are asked to: counted by class, and told once.
//!
//! A handler without probes under a policy that interrupts is served as if the policy did not. Nothing else shows that, so the server
//! writes one line to standard error, as it does for a stack overflow: off the path of requests that yield.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tally::Tally;

/// A request with probes yields within microseconds; one that goes on for longer than this after it was asked did not heed it.
const PROMPT_NS: u64 = 20_000;

/// So many requests of a class must not have yielded, and none have, before the class is named: a stop of the machine may hide one.
const ENOUGH: u64 = 8;

/// A single request that goes on for so long names its class: it may never end.
pub(crate) const ENDLESS_NS: u64 = 100_000_000;

/// What all threads of a server counted, and which classes it has named.
pub(crate) struct Heed {
    tallies: Box<[Arc<Tally>]>,
    classes: Box<[Named]>,
    /// Whether requests say where they may be interrupted: those that say nothing are right.
    feedback: bool,
}

struct Named {
    name: String,
    told: AtomicBool,
}

impl Heed {
    pub(crate) fn new(tallies: &[Arc<Tally>], classes: &[String], feedback: bool) -> Self {
        let named = |name: &String| Named {
            name: name.clone(),
            told: AtomicBool::new(false),
        };
        Self {
            tallies: tallies.into(),
            classes: classes.iter().map(named).collect(),
            feedback,
        }
    }

    /// A request ended `late_ns` after it was asked to yield, without doing so. `tally` is the calling thread's.
    #[inline]
    pub(crate) fn ended(&self, tally: &Tally, class: u16, late_ns: u64) {
        if late_ns > PROMPT_NS {
            self.unheeded(tally, class, ENOUGH);
        }
    }

    /// A request that was asked to yield [long ago](ENDLESS_NS) goes on.
    #[cold]
    pub(crate) fn goes_on(&self, tally: &Tally, class: u16) {
        self.unheeded(tally, class, 1);
    }

    #[cold]
    fn unheeded(&self, tally: &Tally, class: u16, enough: u64) {
        tally.class(class).unheeded.add(1);
        let (mut unheeded, mut yielded) = (0, 0);
        for tally in &self.tallies {
            unheeded += tally.class(class).unheeded.get();
            yielded += tally.class(class).preemptions.get();
        }
        let named = &self.classes[usize::from(class)];
        let tell = unheeded >= enough && yielded == 0 && !self.feedback;
        if tell && !named.told.swap(true, Ordering::Relaxed) {
            // Nobody is left to be told that standard error is closed.
            let _ = writeln!(
                std::io::stderr(),
                "headway: requests of class {} do not yield: {unheeded} went on long after the policy asked them to, and none \
                 yielded. Their handler meets no probe: build it with Headway's pass (`cargo headway build`, headway-cc), mark \
                 its loops `#[preemptible]`, or call checkpoint() in them; or choose a policy that interrupts nobody, such as darc",
                named.name
            );
        }
    }
}
