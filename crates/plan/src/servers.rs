//! The largest number of cores that can run requests under any candidate policy.

use crate::arrangement::LaidOutCandidate;
use crate::question::Question;
use headway_workload::Arrival;
use std::fmt;

/// Cores that run requests: the workers, and the dispatchers that also run requests.
pub(crate) struct Servers {
    pub(crate) count: usize,
    /// The overhead of each request besides its service, ns; 0 where a dispatcher may run it.
    pub(crate) overhead_ns: u64,
    dispatchers_work: bool,
}

impl Servers {
    /// The most such cores and the least overhead of any candidate.
    pub(crate) fn of(question: &Question) -> Self {
        // An invalid policy is refused later, when it is tried.
        let tried = question.entrants().unwrap_or_default();
        let working = |one: &LaidOutCandidate| {
            let facts = one.policy.facts();
            if facts.dispatchers_work {
                facts.dispatchers
            } else {
                0
            }
        };
        let count = |one: &LaidOutCandidate| question.workers_of(&one.server) + working(one);
        let most_working = tried.iter().map(working).max().unwrap_or(0);
        let overheads = tried
            .iter()
            .map(|one| question.costs.of(one.server.layout).overhead_ns);
        Self {
            count: tried.iter().map(count).max().unwrap_or(question.workers),
            overhead_ns: match most_working {
                0 => overheads.min().unwrap_or(0),
                _ => 0,
            },
            dispatchers_work: most_working > 0,
        }
    }

    /// The least time of such a core that a request takes, ns.
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

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Offered;
    use headway_workload::Workload;

    #[test]
    fn the_most_workers_are_those_of_a_layout_without_threads_beside_them() {
        let slo = "class.*.slowdown.p999<=10".parse().unwrap();
        let workload = Workload::named("high-bimodal").unwrap();
        let offered = Offered::Load {
            load: 0.5,
            workers: 7,
        };
        let question = Question {
            cores: Some(8),
            ..Question::new(workload, slo, 7, offered)
        };
        assert_eq!(Servers::of(&question).count, 8);
        let counted_alone = Question {
            cores: None,
            policies: Some(vec!["c-fcfs".parse().unwrap()]),
            ..question
        };
        assert_eq!(Servers::of(&counted_alone).count, 7);
    }
}
