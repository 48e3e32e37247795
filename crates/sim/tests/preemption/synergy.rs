//! SYNERGY.

use super::{Experiment, LONG, Outcome, Sight, assert_same, audited, bimodal, policy, spec};
use headway_policy::server::systems;

/// Only longs, and only for what is in the worker's own queue.
fn longs_for_own(sight: &Sight) -> bool {
    sight.job.class.0 == LONG && sight.own > 0
}

fn run(experiment: &Experiment, params: &str) -> Outcome {
    let spec = spec(&format!("synergy,cost=0,{params}"));
    audited(experiment, longs_for_own, |shape| {
        systems::synergy(shape, &spec).expect("a valid spec")
    })
}

#[test]
fn longs_give_way_and_shorts_never() {
    let outcome = run(&bimodal(), "factor=2");
    assert!(outcome.run.meta.preemptions > 0);
    assert_eq!(outcome.wasted_cores, 0.0);
    let stealing = Experiment {
        policy: policy("work-stealing"),
        ..bimodal()
    };
    let short = |outcome: &Outcome| outcome.run.classes[0].latency_us.p99;
    assert!(short(&outcome) < short(&stealing.run().unwrap()) / 2.0);
}

/// Workers that learn which class is long do nearly as well as those with hints, and interrupt no short before or after.
#[test]
fn what_is_long_can_be_learned() {
    let told = run(&bimodal(), "factor=2,longs=hints");
    let learned = run(&bimodal(), "factor=2,longs=learned");
    let short = |outcome: &Outcome| outcome.run.classes[0].latency_us.p99;
    assert!(learned.run.meta.preemptions > told.run.meta.preemptions * 8 / 10);
    assert!(short(&learned) < short(&told) * 1.25);
}

/// Queues at the threshold stay alone: some worker is idle beside them.
#[test]
fn a_threshold_leaves_short_queues_alone() {
    let outcome = run(&bimodal().load(0.5), "steal_threshold=2");
    assert!(outcome.run.meta.preemptions > 0 && outcome.wasted_cores > 0.0);
}

/// Twice a millisecond is longer than any request: with one worker nothing but FIFO is left.
#[test]
fn the_quantum_follows_the_shorts() {
    let one = bimodal().workers(1).load(0.8);
    assert_same(&run(&one, "factor=2000,q=2ms"), &one.run().unwrap());
    let interruptions = |factor| run(&one, &format!("factor={factor}")).run.meta.preemptions;
    assert!(interruptions(2) > interruptions(10));
}

/// A wait queue that stands still turns the workers to it and lengthens the quantum: longs gain.
#[test]
fn congestion_helps_the_longs() {
    let long = |params| run(&bimodal(), params).run.classes[1].latency_us.mean;
    let plain = long("factor=2");
    assert!(long("thresh_wqd=20us,congested_factor=8") < plain);
    // The flag alone, without the longer quantum, already does it.
    assert!(long("thresh_wqd=20us") < plain);
}

/// Without a core for the monitor the worker pays for each look at a quantum's end, and nobody else does.
#[test]
fn a_worker_that_is_its_own_timer_pays_for_renewals() {
    let alone = |renew_ns| {
        let mut experiment = bimodal().workers(1).load(0.01);
        experiment.costs.renew_ns = renew_ns;
        run(&experiment, "parts=ws+wq+cp,q=10us")
    };
    let mean_us = |outcome: &Outcome, class: usize| outcome.run.classes[class].latency_us.mean;
    let (timer_core, inline) = (alone(0), alone(1_000));
    // 100 µs end after nine renewals.
    let paid_us = mean_us(&inline, 1) - mean_us(&timer_core, 1);
    assert!((8.0..10.5).contains(&paid_us), "{paid_us} µs");
    assert!(mean_us(&inline, 0) < 1.2 * mean_us(&timer_core, 0));
}

/// Two kinds of longs, 50 and 500 µs, beside shorts of 5 µs.
fn trimodal() -> Experiment {
    let mut trimodal = bimodal();
    trimodal.workload = headway_workload::Workload::named("pallas-trimodal").unwrap();
    trimodal
}

/// A queue for each kind: the shorter longs go on first, and only among longs does anything change hands.
#[test]
fn shorter_longs_go_on_before_longer_ones() {
    let run = |waits| {
        let spec = spec(&format!("synergy,waits={waits}"));
        audited(
            &trimodal(),
            |sight: &Sight| sight.job.class.0 > 0 && sight.own > 0,
            |shape| systems::synergy(shape, &spec).expect("a valid spec"),
        )
    };
    let mean = |outcome: &Outcome, class: usize| outcome.run.classes[class].latency_us.mean;
    let (one, two) = (run(1), run(2));
    assert!(
        mean(&two, 1) < 0.9 * mean(&one, 1),
        "{} {}",
        mean(&two, 1),
        mean(&one, 1)
    );
    assert!(mean(&two, 2) > mean(&one, 2));
    assert_eq!(two.wasted_cores, 0.0);
    // There are no more kinds than that.
    assert_same(&two, &run(9));
}

/// A queue of its own that stands still is seen by itself: the longest gain by it, as with one queue.
#[test]
fn the_longest_are_not_left_behind() {
    let longest = |params| {
        let mut experiment = trimodal();
        experiment.policy = policy(&format!("synergy,waits=2,{params}"));
        experiment.run().unwrap().run.classes[2].latency_us.mean
    };
    assert!(longest("thresh_wqd=20us") < longest("thresh_wqd=0"));
}

/// One kind of longs has one queue, however many there may be.
#[test]
fn with_one_kind_of_longs_nothing_changes() {
    let params = "factor=2,thresh_wqd=20us,congested_factor=8";
    assert_same(
        &run(&bimodal(), params),
        &run(&bimodal(), &format!("{params},waits=8")),
    );
}

/// Figure 6.5: each part does its share, on the workload of the paper's ablation.
#[test]
fn every_part_does_its_share() {
    let mut zippy = bimodal();
    zippy.workload = headway_workload::Workload::named("zippydb").unwrap();
    let zippy = zippy.workers(14).load(0.8).requests(200_000);
    let with = |parts: &str| {
        let mut experiment = zippy.clone();
        experiment.policy = policy(&format!("synergy,parts={parts}"));
        experiment.run().unwrap().run
    };
    let slowdown = |parts| with(parts).overall.slowdown.p999;
    let (steals, waits) = (slowdown("ws"), slowdown("ws+wq"));
    assert!(slowdown("none") > steals && steals > waits);
    let interruptions = |parts| with(parts).meta.preemptions as f64;
    let (always, conditional) = (interruptions("ws+wq"), interruptions("ws+wq+cp"));
    assert!(conditional < 0.5 * always, "{conditional} of {always}");
    assert!(slowdown("ws+wq+cp+qa") < slowdown("ws+wq+cp"));
}
