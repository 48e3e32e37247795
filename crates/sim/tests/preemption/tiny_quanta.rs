//! Tiny Quanta.

use super::{
    Experiment, Outcome, assert_processor_sharing, assert_same, audited, bimodal, experiment,
    never, shinjuku, spec,
};
use headway_policy::server::systems;
use headway_workload::{Arrivals, Class, ServiceDistribution, Workload};

fn run(experiment: &Experiment, params: &str) -> Outcome {
    let spec = spec(&format!("tiny-quanta,cost=0,{params}"));
    audited(experiment, never, |shape| {
        systems::tiny_quanta(shape, &spec).expect("a valid spec")
    })
}

#[test]
fn a_small_slice_is_processor_sharing() {
    assert_processor_sharing(50, |experiment| run(experiment, "q=50ns"));
}

/// On one worker it is the same whether the dispatcher interrupts or the worker itself.
#[test]
fn on_one_worker_it_is_shinjuku() {
    let one = bimodal().workers(1).load(0.8);
    assert_same(&run(&one, "q=2us"), &shinjuku::run(&one, "q=2us"));
}

/// A slice that ends while nothing waits is renewed, not yielded: eight workers take even
/// arrivals in turn, and the shortest queue is always an empty one.
#[test]
fn alone_a_request_is_not_interrupted() {
    let service = ServiceDistribution::Constant { mean_ns: 10_000 };
    let mut workload = Workload::new("even", vec![Class::new("request", 1.0, service)]);
    workload.arrivals = Arrivals::Deterministic;
    let even = experiment(workload).workers(8).requests(10_000);
    let outcome = run(&even.load(0.9), "q=500ns");
    assert_eq!(outcome.run.meta.preemptions, 0);
    assert_eq!(outcome.run.overall.slowdown.max, 1.0);
}
