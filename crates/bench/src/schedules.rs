//! The arrivals for each receive queue of a server.

use headway_net::replay::ReplayArrival;
use headway_policy::Shape;
use headway_policy::server::placements::Hashed;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{Division, ServerSpec};
use headway_policy::spec::{SpecError, Value};
use headway_sim::Experiment;
use headway_workload::Arrival;

/// One schedule for each dispatcher, a single one for workers that take from a shared queue, and one per worker where the network steers. The
/// steering hash is the simulator's.
pub(crate) fn schedules(
    experiment: &Experiment,
    arrivals: &[Arrival],
) -> Result<Vec<Vec<ReplayArrival>>, SpecError> {
    let policy = experiment.policy.server()?;
    let workers = experiment.workers;
    let facts = policy.facts();
    let queues = match facts.owner {
        Owner::Steering => workers,
        Owner::Dispatcher => facts.dispatchers,
        Owner::Nobody => 1,
    };
    let division = Division::new(workers, queues);
    let card = Hashed::new(flows(policy, workers)?, experiment.seed);
    let mut schedules = vec![Vec::new(); queues];
    for (index, arrival) in arrivals.iter().enumerate() {
        let queue = if facts.owner == Owner::Steering {
            card.queue(arrival.flow, queues)
        } else {
            division.steer(arrival.flow)
        };
        schedules[queue].push(ReplayArrival {
            at_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            index: index as u32,
            class: arrival.class as u8,
        });
    }
    Ok(schedules)
}

/// The number of flows in the policy's parameters; 0 where each request is a flow of its own.
fn flows(policy: &ServerSpec, workers: usize) -> Result<u64, SpecError> {
    let params = policy.check(&Shape::new(workers))?;
    let flows = params.iter().find(|(key, _)| *key == "flows");
    Ok(match flows {
        Some((_, Value::Number(flows))) => *flows as u64,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trial;
    use headway_policy::server::role::{Ingress, Local, Monitor};
    use headway_policy::server::systems::{self, System, VisitInstance};
    use headway_policy::{ClassId, Job, JobId};
    use headway_sim::Flows;
    use headway_workload::Workload;

    const WORKERS: usize = 4;

    fn trial(policy: &str, flows: Option<Flows>) -> Trial {
        let workload = Workload::resolve("high-bimodal").unwrap();
        let experiment = Experiment::new(workload, policy.parse().unwrap());
        let mut experiment = experiment.workers(WORKERS).requests(5_000).seed(3);
        experiment.flows = flows;
        Trial::new(experiment)
    }

    /// The workers that the policy's own ingress steers these arrivals to.
    struct SteerArrivals<'a>(&'a [Arrival]);

    impl VisitInstance for SteerArrivals<'_> {
        type Output = Vec<usize>;

        fn visit_instance<I: Ingress, L: Local, M: Monitor>(
            self,
            mut system: System<I, L, M>,
        ) -> Vec<usize> {
            self.0
                .iter()
                .map(|arrival: &Arrival| {
                    let job = Job {
                        flow: arrival.flow,
                        ..Job::new(JobId(0), ClassId(0), 0)
                    };
                    system.ingress.arrived(0, job).unwrap();
                    system.ingress.poll(0).unwrap().worker.index()
                })
                .collect()
        }
    }

    #[test]
    fn requests_arrive_live_where_the_simulator_steers_them() {
        let skewed = Flows {
            count: 8,
            skew: 1.0,
        };
        for (policy, flows) in [
            ("synergy", None),
            ("synergy,flows=8", None),
            ("synergy", Some(Flows::even(8))),
            ("d-fcfs", Some(skewed)),
        ] {
            let trial = trial(policy, flows);
            let arrivals = trial.arrivals().unwrap();
            let schedules = schedules(&trial.experiment, &arrivals).unwrap();
            let mut live = vec![WORKERS; arrivals.len()];
            for (queue, schedule) in schedules.iter().enumerate() {
                schedule
                    .iter()
                    .for_each(|arrival| live[arrival.index as usize] = queue);
            }
            let mut shape = Shape::new(WORKERS).class(1_000, 1.0);
            shape.seed = trial.experiment.seed;
            let spec = trial.experiment.policy.server().unwrap();
            let simulated = systems::with(spec, &shape, SteerArrivals(&arrivals)).unwrap();
            assert_eq!(live, simulated, "{policy} {flows:?}");
        }
    }

    #[test]
    fn few_flows_load_the_queues_unevenly() {
        let most = |flows| {
            let trial = trial("d-fcfs", flows);
            let arrivals = trial.arrivals().unwrap();
            let schedules = schedules(&trial.experiment, &arrivals).unwrap();
            schedules.iter().map(Vec::len).max().unwrap()
        };
        assert!(most(None).abs_diff(1_250) < 150);
        assert!(most(Some(Flows::even(8))) > 1_600);
        assert_eq!(most(Some(Flows::even(1))), 5_000);
    }
}
