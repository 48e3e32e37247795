//! The largest number of cores that can run requests under any candidate policy.

use crate::candidates::{Candidate, candidates, candidates_of};
use crate::question::Question;
use headway_policy::Shape;
use headway_policy::server::systems::ServerSpec;
use headway_sim::Costs;
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
        let tried = match &question.policies {
            // An invalid policy is refused later, when it is tried.
            Some(given) => candidates_of(given, &question.workload, &question.shape()),
            None => candidates(&question.workload, &question.shape()),
        };
        let tried = tried.unwrap_or_default();
        let working = |one: &Candidate| {
            let facts = one.policy.facts();
            if facts.dispatchers_work {
                facts.dispatchers
            } else {
                0
            }
        };
        let count = |one: &Candidate| question.workers_of(&one.policy) + working(one);
        let most_working = tried.iter().map(working).max().unwrap_or(0);
        Self {
            count: tried.iter().map(count).max().unwrap_or(question.workers),
            overhead_ns: match most_working {
                0 => question.costs.overhead_ns,
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

impl Question {
    /// The shape that the policies are built for.
    pub(crate) fn shape(&self) -> Shape {
        let mut shape = Shape::new(self.workers);
        shape.resume = self.resume;
        shape
    }

    /// The costs under a policy. The dispatcher, or the worker where there is none, pays for receiving.
    #[must_use]
    pub fn costs_of(&self, policy: &ServerSpec) -> Costs {
        let mut costs = self.costs;
        match policy.facts().cores_beside_workers() {
            0 => costs.overhead_ns += self.receive_ns,
            _ => costs.dispatch_ns += self.receive_ns,
        }
        costs
    }

    /// Workers under a policy: the cores that its dispatchers and timers leave.
    pub(crate) fn workers_of(&self, policy: &ServerSpec) -> usize {
        let Some(cores) = self.cores else {
            return self.workers;
        };
        let beside = policy.facts().cores_beside_workers();
        cores.saturating_sub(beside).max(1)
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
    fn dispatchers_and_timers_have_cores_of_their_own() {
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
        let workers = |policy: &str| question.workers_of(&policy.parse().unwrap());
        assert_eq!(
            ["c-fcfs", "d-fcfs", "darc", "work-stealing"].map(workers),
            [7, 8, 7, 8]
        );
        assert_eq!(
            ["concord", "concord,dispatchers=2", "tardis"].map(workers),
            [7, 6, 8]
        );
        assert_eq!(
            Servers::of(&question).count,
            8,
            "of those without a dispatcher"
        );
        let paying = Question {
            receive_ns: 700,
            ..question.clone()
        };
        assert_eq!(
            ["darc", "d-fcfs"].map(|policy: &str| {
                let costs = paying.costs_of(&policy.parse().unwrap());
                (costs.dispatch_ns, costs.overhead_ns)
            }),
            [(700, 0), (0, 700)]
        );
        let counted_alone = Question {
            cores: None,
            ..question
        };
        assert_eq!(counted_alone.workers_of(&"d-fcfs".parse().unwrap()), 7);
    }
}
