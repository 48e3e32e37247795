//! What can run requests at all, whichever of the policies in question is chosen.

use crate::candidates::{Candidate, candidates_of, working_dispatchers};
use crate::question::Question;
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
        let working = most_working(question);
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

/// Dispatchers that work, of the candidate that has the most. Of the table's own none does.
fn most_working(question: &Question) -> usize {
    let Some(given) = &question.policies else {
        return 0;
    };
    let shape = Shape::new(question.workers);
    // What cannot be built is refused where it is tried.
    let tried = candidates_of(given, &question.workload, question.workers).unwrap_or_default();
    let works = |one: &Candidate| {
        systems::check(&one.policy, &shape).map_or(0, |used| working_dispatchers(&used))
    };
    tried.iter().map(works).max().unwrap_or(0)
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
