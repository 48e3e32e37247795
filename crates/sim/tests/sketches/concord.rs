//! Concord: bounded queues at the workers (the audit holds them to k), flags for the quantum.

use crate::quantum::Quantum;
use crate::{assert_same, audited, bimodal, shinjuku, under};
use headway_policy::{Shape, systems};
use headway_sim::{Experiment, Outcome};

fn run(experiment: &Experiment, depth: usize, quantum_ns: u64) -> Outcome {
    audited(experiment, Quantum::is_due, |shape: &Shape| {
        let quantum = Quantum::new(shape.workers, quantum_ns);
        under("concord", systems::jbsq(shape, depth), quantum)
    })
}

#[test]
fn depth_one_is_the_single_queue() {
    let outcome = run(&bimodal(), 1, 5_000);
    assert_same(&outcome, &shinjuku::run(&bimodal(), 5_000));
}

#[test]
fn a_quantum_as_long_as_the_longest_request_is_jbsq() {
    let mut jbsq = bimodal();
    jbsq.policy = "jbsq,k=2".parse().unwrap();
    assert_same(&run(&bimodal(), 2, 100_000), &jbsq.run().unwrap());
}

/// What the bounded queues hold back from idle workers is bounded as well: little is lost
/// against the single queue, and shorts still overtake longs.
#[test]
fn bounded_queues_cost_little() {
    let shallow = run(&bimodal(), 1, 5_000);
    let outcome = run(&bimodal(), 2, 5_000);
    assert!(outcome.run.meta.preemptions > 0);
    assert!(
        outcome.wasted_cores > 0.0,
        "one queue per worker wastes some"
    );
    let mean = |outcome: &Outcome| outcome.run.classes[0].latency_us.mean;
    assert!(mean(&outcome) < 2.0 * mean(&shallow));
}
