//! Shinjuku, single queue.

use super::{
    Experiment, Outcome, assert_processor_sharing, assert_same, audited, bimodal, flood,
    something_waits, spec,
};
use headway_policy::server::systems;
use headway_sim::Costs;

/// With free interrupts unless the parameters say otherwise.
pub(crate) fn run(experiment: &Experiment, params: &str) -> Outcome {
    let spec = spec(&format!("shinjuku-sq,cost=0,{params}"));
    audited(experiment, something_waits, |shape| {
        systems::shinjuku_sq(shape, &spec).expect("a valid spec")
    })
}

#[test]
fn a_quantum_as_long_as_the_longest_request_is_c_fcfs() {
    let outcome = run(&bimodal(), "q=100us");
    assert_same(&outcome, &bimodal().run().unwrap());
}

#[test]
fn keeps_every_worker_busy_and_shorts_short() {
    let outcome = run(&bimodal(), "q=5us");
    assert_eq!(outcome.wasted_cores, 0.0);
    let c_fcfs = bimodal().run().unwrap();
    let short = |outcome: &Outcome| outcome.run.classes[0].latency_us.p99;
    assert!(short(&outcome) < short(&c_fcfs) / 2.0);
}

#[test]
fn a_small_quantum_is_processor_sharing() {
    assert_processor_sharing(50, |experiment| run(experiment, "q=50ns"));
}

/// A request of k quanta is interrupted k − 1 times when something always waits.
#[test]
fn interrupts_between_the_quanta_of_a_request() {
    assert_eq!(run(&flood(), "q=5us").run.meta.preemptions, 3 * 1_000);
}

/// The last requests of the flood have nothing waiting behind them; the others pay 3 interrupts.
#[test]
fn a_blocking_cost_is_paid_by_the_worker_before_it_switches() {
    let paid = run(&flood(), "q=5us,cost=1us");
    assert_eq!(paid.run.meta.preemptions, 3 * 1_000);
    let (free, busy) = (run(&flood(), "q=5us"), |outcome: &Outcome| {
        outcome.run.overall.latency_us.max
    });
    // 20 ms of service and 3 ms of interrupts.
    let added_us = busy(&paid) - busy(&free);
    assert!((added_us - 3_000.0).abs() < 30.0, "{added_us} µs");
}

/// Charged to the request, an interrupt lengthens it: 20 µs in quanta of 5 µs are interrupted
/// after 5, 10, 15 and 20 µs, since the three before made it longer.
#[test]
fn a_charged_cost_is_served_later() {
    let experiment = flood();
    let spec = spec("shinjuku-sq,q=5us,cost=1us,charge=request");
    let outcome = experiment
        .run_system(|shape| systems::shinjuku_sq(shape, &spec).expect("a valid spec"))
        .unwrap();
    let per_request = outcome.run.meta.preemptions as f64 / 1_000.0;
    assert!((per_request - 4.0).abs() < 0.01, "{per_request}");
}

/// Each quantum is followed by the dispatcher's hearing of its end and by a hand-off.
#[test]
fn the_worker_is_idle_while_the_dispatcher_does_not_know() {
    let costs = Costs {
        completion_ns: 700,
        handoff_ns: 300,
        ..Costs::default()
    };
    let outcome = run(&flood().costs(costs), "q=5us");
    assert!((outcome.run.meta.utilization - 5.0 / 6.0).abs() < 1e-3);
}

/// Figure 5 of Concord: what is late by a half-normal of 1 µs on average 0.8 µs.
#[test]
fn late_interruptions_lengthen_the_quantum_by_what_they_are_late() {
    let quanta = |params: &str| {
        // Long requests, so that the last, shorter quantum does not count.
        let mut flood = flood();
        flood.workload.classes[0].service = headway_workload::ServiceDistribution::Constant {
            mean_ns: 10_000_000,
        };
        let spec = spec(&format!("shinjuku-sq,cost=0,{params}"));
        let outcome = flood
            .requests(20)
            .run_system(|shape| systems::shinjuku_sq(shape, &spec).expect("a valid spec"))
            .unwrap();
        200e6 / outcome.run.meta.preemptions as f64
    };
    let mean_ns = quanta("q=5us,sigma=1us");
    assert!((mean_ns - 5_798.0).abs() < 40.0, "{mean_ns} ns");
    let mean_ns = quanta("q=5us,late=0ns/1us/1us");
    assert!((mean_ns - 5_750.0).abs() < 40.0, "{mean_ns} ns");
}
