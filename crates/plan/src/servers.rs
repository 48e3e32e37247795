//! What can run requests at all, whichever of the policies in question is chosen.

use crate::candidates::working_dispatchers;
use crate::question::Question;
use headway_policy::spec::Spec;
use headway_policy::{Shape, systems};
use headway_workload::Arrival;
use std::fmt;

/// Cores that run requests: the workers, and the dispatchers that work.
pub(crate) struct Servers {
    pub(crate) count: usize,
    /// What each request takes besides its service, ns: nothing where it may be a dispatcher that runs it.
    pub(crate) overhead_ns: u64,
    dispatchers_work: bool,
}

impl Servers {
    /// The most, and the least overhead, that a policy in question has.
    pub(crate) fn of(question: &Question) -> Self {
        let shape = Shape::new(question.workers);
        let works = |given: &Spec| {
            systems::check(given, &shape).map_or(0, |used| working_dispatchers(&used))
        };
        // Of the table none works: where one is given without saying so, `dedicated` is tried.
        let given = question.policies.iter().flatten();
        let says_so = given.filter(|given| given.params.iter().any(|(key, _)| key == "dispatcher"));
        let working = says_so.map(works).max().unwrap_or(0);
        Self {
            count: question.workers + working,
            overhead_ns: match working {
                0 => question.costs.overhead_ns,
                _ => 0,
            },
            dispatchers_work: working > 0,
        }
    }

    /// What a request takes of one of them at least, ns.
    pub(crate) fn work_ns(&self, arrival: &Arrival) -> u64 {
        arrival.service_ns + self.overhead_ns
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.dispatchers_work {
            " with dispatchers that work"
        } else {
            ""
        };
        write!(f, "{}{who}", self.count)
    }
}
