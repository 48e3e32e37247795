//! Shinjuku, single queue: c-FCFS whose quantum the dispatcher watches; what it interrupts goes
//! to the tail of the central queue.

use crate::quantum::Quantum;
use crate::{assert_processor_sharing, assert_same, audited, bimodal, experiment, under};
use headway_policy::{Shape, systems};
use headway_sim::{Costs, Experiment, Outcome};
use headway_workload::{Class, Service, Workload};

pub(crate) fn run(experiment: &Experiment, quantum_ns: u64) -> Outcome {
    audited(experiment, Quantum::is_due, |shape: &Shape| {
        let quantum = Quantum::new(shape.workers, quantum_ns);
        under("shinjuku-sq", systems::c_fcfs(shape), quantum)
    })
}

#[test]
fn a_quantum_as_long_as_the_longest_request_is_c_fcfs() {
    let outcome = run(&bimodal(), 100_000);
    assert_same(&outcome, &bimodal().run().unwrap());
}

#[test]
fn keeps_every_worker_busy_and_shorts_short() {
    let outcome = run(&bimodal(), 5_000);
    assert_eq!(outcome.wasted_cores, 0.0);
    let c_fcfs = bimodal().run().unwrap();
    let short = |outcome: &Outcome| outcome.run.classes[0].latency_us.p99;
    assert!(short(&outcome) < short(&c_fcfs) / 2.0);
}

#[test]
fn a_small_quantum_is_processor_sharing() {
    assert_processor_sharing(50, |experiment| run(experiment, 50));
}

/// One worker that something always waits for, with requests of four quanta.
fn flood() -> Experiment {
    let service = Service::Constant { mean_ns: 20_000 };
    let workload = Workload::new("constant", vec![Class::new("request", 1.0, service)]);
    experiment(workload).workers(1).load(50.0).requests(1_000)
}

/// A request of k quanta is interrupted k − 1 times when something always waits.
#[test]
fn interrupts_between_the_quanta_of_a_request() {
    assert_eq!(run(&flood(), 5_000).run.meta.preemptions, 3 * 1_000);
}

/// Each quantum is followed by the dispatcher's hearing of its end and by a hand-off.
#[test]
fn the_worker_is_idle_while_the_dispatcher_does_not_know() {
    let costs = Costs {
        completion_ns: 700,
        handoff_ns: 300,
        ..Costs::default()
    };
    let outcome = run(&flood().costs(costs), 5_000);
    assert!((outcome.run.meta.utilization - 5.0 / 6.0).abs() < 1e-3);
}
