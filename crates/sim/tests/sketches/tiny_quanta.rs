//! Tiny Quanta: the least loaded worker at once, ties at random; each worker goes round its own
//! requests and interrupts itself.

use crate::{assert_processor_sharing, assert_same, audited, bimodal, experiment, shinjuku};
use headway_policy::controls::Fixed;
use headway_policy::disciplines::Fifo;
use headway_policy::placements::{Placement, Workers};
use headway_policy::role::{Local, Never, Next, Queues};
use headway_policy::spec::Params;
use headway_policy::systems::System;
use headway_policy::{BitSet, Central, Job, Jobs, Order, Plan, Rng, Shape, WorkerId};
use headway_sim::{Experiment, Outcome};
use headway_workload::{Arrivals, Class, Service, Workload};

struct Shortest(Rng);

impl Placement for Shortest {
    fn place(&mut self, _job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let least = workers.least()?;
        let worker = least.iter().nth(self.0.below(least.len()))?;
        Some(WorkerId(worker as u16))
    }
}

#[derive(Clone)]
struct RoundRobin {
    slice_ns: u64,
}

impl Local for RoundRobin {
    fn next<Q: Queues>(&mut self, _now_ns: u64, queues: &mut Q) -> Next {
        let slice_ns = Some(self.slice_ns);
        let run = |job| Next::Run { job, slice_ns };
        queues.pop().map_or(Next::Idle, run)
    }

    fn renew<Q: Queues>(&mut self, _now_ns: u64, queues: &Q) -> Option<u64> {
        (queues.len(queues.me()) == 0).then_some(self.slice_ns)
    }

    fn yielded<Q: Queues>(&mut self, _: u64, job: &Job, _: u64, queues: &mut Q) -> bool {
        queues.push(job.id);
        true
    }
}

fn run(experiment: &Experiment, slice_ns: u64) -> Outcome {
    // Deeper than any queue of a stable run: in effect unbounded.
    const DEPTH: usize = 4096;
    audited(
        experiment,
        |_| false,
        |shape: &Shape| {
            let all = BitSet::range(0, shape.workers);
            let plan = Plan::open(Order::Arrival, shape.ascending(), all);
            let shortest = Shortest(Rng::new(shape.seed));
            let parts = (Fifo::new(shape.queue_limit), shortest, Fixed::Open);
            let workers = Workers::new(shape.workers, DEPTH);
            System {
                name: "tiny-quanta",
                params: Params::new(),
                ingress: Central::new(Jobs::new(shape.job_capacity), workers, plan, parts),
                locals: vec![RoundRobin { slice_ns }; shape.workers],
                monitor: Never,
                depth: DEPTH,
            }
        },
    )
}

#[test]
fn a_small_slice_is_processor_sharing() {
    assert_processor_sharing(50, |experiment| run(experiment, 50));
}

/// On one worker it is the same whether the dispatcher interrupts or the worker itself.
#[test]
fn on_one_worker_it_is_shinjuku() {
    let one = bimodal().workers(1).load(0.8);
    assert_same(&run(&one, 2_000), &shinjuku::run(&one, 2_000));
}

/// A slice that ends while nothing waits is renewed, not yielded: eight workers take even
/// arrivals in turn, and the shortest queue is always an empty one.
#[test]
fn alone_a_request_is_not_interrupted() {
    let service = Service::Constant { mean_ns: 10_000 };
    let mut workload = Workload::new("even", vec![Class::new("request", 1.0, service)]);
    workload.arrivals = Arrivals::Deterministic;
    let even = experiment(workload).workers(8).requests(10_000);
    let outcome = run(&even.load(0.9), 500);
    assert_eq!(outcome.run.meta.preemptions, 0);
    assert_eq!(outcome.run.overall.slowdown.max, 1.0);
}
