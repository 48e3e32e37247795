//! How a candidate is run: by which threads, and where its requests resume.

use crate::candidates::{Candidate, candidates, candidates_of};
use crate::question::Question;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Preemption, ServerSpec};
use headway_policy::spec::SpecError;
use headway_policy::{Resume, Shape};
use headway_sim::{Costs, ThreadLayout};

/// A policy on a server whose threads are laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedServer {
    /// The policy as simulated.
    pub policy: ServerSpec,
    /// Who dispatches and interrupts.
    pub layout: ThreadLayout,
    /// Where an interrupted request resumes.
    pub resume: Resume,
}

/// A candidate, laid out.
#[derive(Clone, Debug)]
pub(crate) struct LaidOutCandidate {
    /// The policy as a user passes it to the server.
    pub(crate) policy: ServerSpec,
    pub(crate) server: PlannedServer,
}

impl PlannedServer {
    /// A server whose dispatchers and timers have threads of their own, and whose interrupted requests resume anywhere: the papers' own.
    #[must_use]
    pub fn new(policy: ServerSpec) -> Self {
        Self {
            layout: ThreadLayout::of(&policy.facts(), true),
            policy,
            resume: Resume::Anywhere,
        }
    }

    /// Cores beside those of its workers.
    #[must_use]
    pub fn cores_beside(&self) -> usize {
        self.layout.cores_beside(&self.policy.facts())
    }
}

impl Question {
    /// Every candidate in each of its layouts.
    pub(crate) fn entrants(&self) -> Result<Vec<LaidOutCandidate>, SpecError> {
        let found = match &self.policies {
            Some(given) => candidates_of(given, &self.workload, &self.shape())?,
            None => candidates(&self.workload, &self.shape())?,
        };
        let laid_out = found.into_iter().flat_map(|one: Candidate| {
            let resume = self.resume.unwrap_or(if one.policy.facts().roams() {
                Resume::Anywhere
            } else {
                Resume::OwnWorker
            });
            let layouts = self.layouts_of(&one.policy);
            layouts.into_iter().map(move |layout| LaidOutCandidate {
                policy: one.policy.clone(),
                server: PlannedServer {
                    policy: one.simulated.clone(),
                    layout,
                    resume,
                },
            })
        });
        Ok(laid_out.collect())
    }

    /// The layouts in which a policy is tried: with threads beside the workers where there are cores for them, and without where the cores are counted.
    fn layouts_of(&self, policy: &ServerSpec) -> Vec<ThreadLayout> {
        let facts = policy.facts();
        let beside = ThreadLayout::of(&facts, true);
        let Some(cores) = self.cores else {
            return vec![beside];
        };
        let without = ThreadLayout::of(&facts, false);
        let has_monitor = matches!(facts.preemption, Preemption::ByMonitor { .. });
        // A dispatcher that also works is what workers in turn are; several of them are for more workers than one can serve.
        let takes_turns = facts.dispatchers == 1 && !facts.dispatchers_work;
        let has_choice = match facts.owner {
            Owner::Dispatcher => takes_turns,
            Owner::Steering => has_monitor,
            Owner::Nobody => false,
        };
        let mut layouts = Vec::new();
        if cores > beside.cores_beside(&facts) || !has_choice {
            layouts.push(beside);
        }
        if has_choice && without != beside {
            layouts.push(without);
        }
        layouts
    }

    /// The shape that the policies are built for.
    pub(crate) fn shape(&self) -> Shape {
        let mut shape = Shape::new(self.workers);
        shape.resume = self.resume.unwrap_or(Resume::Anywhere);
        shape
    }

    /// The costs of a server. Its dispatcher's thread pays for receiving, or the workers where there is none.
    #[must_use]
    pub fn costs_of(&self, server: &PlannedServer) -> Costs {
        let mut costs = self.costs.of(server.layout);
        if server.layout == ThreadLayout::Dedicated {
            costs.dispatch_ns += self.receive_ns;
        } else {
            costs.overhead_ns += self.receive_ns;
        }
        costs
    }

    /// Workers of a server: the cores that its dispatchers and timers leave.
    pub(crate) fn workers_of(&self, server: &PlannedServer) -> usize {
        let Some(cores) = self.cores else {
            return self.workers;
        };
        cores.saturating_sub(server.cores_beside()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::{MachineCosts, Offered};
    use headway_workload::Workload;

    fn question(cores: Option<usize>) -> Question {
        let slo = "class.*.slowdown.p999<=10".parse().unwrap();
        let workload = Workload::named("high-bimodal").unwrap();
        let offered = Offered::Load {
            load: 0.5,
            workers: 7,
        };
        Question {
            cores,
            resume: None,
            ..Question::new(workload, slo, 7, offered)
        }
    }

    #[test]
    fn each_policy_is_tried_in_every_layout_that_it_can_have() {
        let tried = |cores, policy: &str| {
            let question = question(cores);
            let layouts = question.layouts_of(&policy.parse().unwrap());
            let name = |layout: ThreadLayout| {
                let server = PlannedServer {
                    layout,
                    ..PlannedServer::new(policy.parse().unwrap())
                };
                (layout.name(), question.workers_of(&server))
            };
            layouts.into_iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(tried(Some(8), "c-fcfs"), [("dedicated", 7), ("inline", 8)]);
        assert_eq!(tried(Some(1), "c-fcfs"), [("inline", 1)]);
        assert_eq!(
            tried(Some(8), "synergy"),
            [("monitored", 7), ("steered", 8)]
        );
        assert_eq!(tried(Some(8), "d-fcfs"), [("steered", 8)]);
        assert_eq!(tried(Some(8), "tardis"), [("unplaced", 8)]);
        assert_eq!(tried(Some(8), "concord,dispatchers=2"), [("dedicated", 6)]);
        assert_eq!(tried(None, "c-fcfs"), [("dedicated", 7)]);
    }

    #[test]
    fn policies_that_move_requests_are_tried_unless_requests_must_stay() {
        let entrants = question(Some(2)).entrants().unwrap();
        let resumes = |name: &str| {
            let mine = entrants.iter().filter(|one| one.policy.name() == name);
            mine.map(|one| one.server.resume).collect::<Vec<_>>()
        };
        for moves in ["synergy", "tardis"] {
            let resumes = resumes(moves);
            assert!(!resumes.is_empty() && resumes.iter().all(|one| *one == Resume::Anywhere));
        }
        for stays in ["srpt", "concord", "darc"] {
            let resumes = resumes(stays);
            assert!(!resumes.is_empty() && resumes.iter().all(|one| *one == Resume::OwnWorker));
        }
        let staying = Question {
            resume: Some(Resume::OwnWorker),
            ..question(Some(2))
        };
        let mut left = staying.entrants().unwrap().into_iter();
        assert!(left.all(|one| one.policy.name() != "synergy"));
    }

    #[test]
    fn whoever_receives_pays_for_it() {
        let measured = Costs {
            dispatch_ns: 100,
            overhead_ns: 40,
            ..Costs::default()
        };
        let mut costs = MachineCosts::from(measured);
        costs.set(
            ThreadLayout::Inline,
            Costs {
                overhead_ns: 150,
                ..measured
            },
        );
        let question = Question {
            receive_ns: 700,
            costs,
            ..question(Some(8))
        };
        let paid = |policy: &str, dedicated| {
            let policy: ServerSpec = policy.parse().unwrap();
            let layout = ThreadLayout::of(&policy.facts(), dedicated);
            let server = PlannedServer {
                layout,
                ..PlannedServer::new(policy)
            };
            let costs = question.costs_of(&server);
            (costs.dispatch_ns, costs.overhead_ns)
        };
        assert_eq!(paid("darc", true), (800, 40));
        assert_eq!(paid("darc", false), (100, 850));
        assert_eq!(paid("d-fcfs", true), (100, 740));
    }
}
