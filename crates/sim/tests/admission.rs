//! What waits before a policy, where a limit holds of what may have begun, as in a pool.

use headway_policy::server::systems::NAMES;
use headway_sim::{Experiment, Outcome};
use headway_workload::Workload;

const WORKERS: usize = 2;

fn experiment(workload: &str, policy: &str, load: f64) -> Experiment {
    let workload = Workload::named(workload).unwrap();
    Experiment::new(workload, policy.parse().unwrap())
        .workers(WORKERS)
        .load(load)
        .requests(20_000)
}

fn run(experiment: &Experiment, begun_at_most: Option<usize>) -> Outcome {
    let mut experiment = experiment.clone();
    experiment.begun_at_most = begun_at_most;
    let outcome = experiment.run().unwrap();
    assert_eq!(outcome.run.meta.dropped, 0, "{}", experiment.policy);
    outcome
}

#[test]
fn a_limit_that_nothing_reaches_changes_nothing() {
    for policy in NAMES {
        let experiment = experiment("high-bimodal", policy, 0.8);
        let (without, with) = (run(&experiment, None), run(&experiment, Some(1 << 40)));
        assert_eq!(without.run, with.run, "{policy}");
    }
}

/// First come first served is the same wherever the queue is.
#[test]
fn one_queue_in_order_of_arrival_is_the_same_before_the_policy() {
    let experiment = experiment("exponential-1us", "c-fcfs", 1.2);
    let without = run(&experiment, None);
    for limit in [1, 4, 100] {
        assert_eq!(without.run, run(&experiment, Some(limit)).run, "{limit}");
    }
}

/// In an overload by longs shorts begin at once, since a class leaves others a third of the limit. Not under a policy that serves all in turns: there as many shorts are
/// under way as begin in a turn of all longs.
#[test]
fn shorts_begin_in_an_overload_by_longs() {
    for policy in ["mlfq", "gittins", "srpt"] {
        let experiment = experiment("extreme-bimodal", policy, 1.6);
        let p99_us = |limit| run(&experiment, limit).run.classes[0].latency_us.p99;
        let without_us = p99_us(None);
        for limit in [8, 32, 128] {
            let with_us = p99_us(Some(limit));
            assert!(
                with_us <= 1.05 * without_us,
                "{policy}, {limit}: {with_us} µs, {without_us} without"
            );
        }
    }
}

#[test]
fn a_limit_needs_one_server_with_queues() {
    for policy in ["ps", "racksched", "shenango"] {
        let mut experiment = experiment("high-bimodal", policy, 0.5);
        experiment.begun_at_most = Some(100);
        let refused = experiment.run().unwrap_err().to_string();
        assert!(refused.contains(policy), "{refused}");
    }
    let mut experiment = experiment("high-bimodal", "srpt", 0.5);
    experiment.begun_at_most = Some(0);
    assert!(experiment.check().is_err());
}
