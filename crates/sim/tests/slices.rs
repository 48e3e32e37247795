//! The schedule that a run returns is the one that it measured.

use headway_report::schedule::{Runner, Slice};
use headway_sim::Experiment;
use headway_workload::{Generator, Workload};
use std::collections::BTreeMap;

fn experiment(policy: &str) -> Experiment {
    let workload = Workload::named("tpcc").expect("it is known");
    let mut experiment = Experiment::new(workload, policy.parse().expect("a policy"))
        .workers(3)
        .load(0.85)
        .requests(4_000);
    experiment.warm_up = 0.0;
    experiment
}

/// All policies, and several dispatchers.
fn policies() -> impl Iterator<Item = &'static str> {
    let named = headway_policy::server::systems::NAMES.iter().copied();
    named.chain(["concord,dispatchers=2,q=2us"])
}

fn slices(policy: &str) -> (Experiment, Vec<Slice>) {
    let mut experiment = experiment(policy);
    experiment.trace_window = Some(0..u64::MAX);
    let slices = experiment.run().expect("it runs").slices;
    (experiment, slices)
}

#[test]
fn looking_changes_nothing() {
    for policy in policies() {
        let seen = slices(policy).0.run().unwrap();
        let unseen = experiment(policy).run().unwrap();
        assert_eq!(seen.run, unseen.run, "{policy}");
        assert!(unseen.slices.is_empty());
    }
}

#[test]
fn every_request_is_served_in_full_on_one_worker_at_a_time() {
    for policy in policies() {
        let (experiment, slices) = slices(policy);
        let mut served = BTreeMap::new();
        let mut busy_until = vec![0; experiment.workers];
        for slice in &slices {
            assert!(
                slice.waited_from_ns <= slice.from_ns && slice.from_ns < slice.to_ns,
                "{slice:?}"
            );
            *served.entry(slice.request).or_insert(0) += slice.to_ns - slice.from_ns;
            if let Runner::Worker(worker) = slice.runner {
                assert!(busy_until[worker] <= slice.from_ns, "{policy}: {slice:?}");
                busy_until[worker] = slice.to_ns;
            }
        }
        let drawn = Generator::new(&experiment.workload, experiment.offered, experiment.seed);
        for (index, arrival) in drawn.take(4_000).enumerate() {
            let time = served.get(&(index as u64)).copied().unwrap_or(0);
            // A policy whose costs slow or charge requests serves them longer.
            assert!(
                time >= arrival.service_ns,
                "{policy}: request {index}: {time}"
            );
        }
    }
}

#[test]
fn a_window_tells_what_touches_it_and_nothing_else() {
    let (mut experiment, all) = slices("c-fcfs");
    let window = 2_000_000..2_400_000;
    experiment.trace_window = Some(window.clone());
    let some = experiment.run().unwrap().slices;
    let expected: Vec<Slice> = all
        .iter()
        .filter(|slice: &&Slice| slice.waited_from_ns < window.end && slice.to_ns > window.start)
        .copied()
        .collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert_eq!(some, expected);
}

/// Requests bound to their worker are served there alone, in full, and wait longer than those that roam.
#[test]
fn bound_requests_stay_where_they_were_begun() {
    let bound = [
        "shinjuku-sq",
        "shinjuku-mq",
        "concord",
        "srpt",
        "on-blocked",
        "mlfq",
        "gittins",
        "cscq",
    ];
    for policy in bound {
        let mut experiment = experiment(policy);
        experiment.trace_window = Some(0..u64::MAX);
        let roaming = experiment.run().expect("it runs");
        experiment.resume = headway_policy::Resume::OwnWorker;
        let outcome = experiment.run().expect("it runs");
        let mut place = BTreeMap::new();
        for slice in &outcome.slices {
            let first = place.entry(slice.request).or_insert(slice.runner);
            assert_eq!(*first, slice.runner, "{policy}: {slice:?}");
        }
        assert_eq!(place.len(), 4_000, "{policy}");
        let preempts = outcome.run.meta.preemptions > 0;
        let same = outcome.slices == roaming.slices;
        assert!(!(preempts && same), "{policy} took no notice");
    }
}

#[test]
fn bound_requests_are_refused_where_anyone_may_go_on_with_them() {
    for policy in ["synergy", "tardis"] {
        let mut experiment = experiment(policy);
        experiment.resume = headway_policy::Resume::OwnWorker;
        let Err(refusal) = experiment.run() else {
            panic!("{policy} kept to it")
        };
        let refusal = refusal.to_string();
        assert!(refusal.contains(policy), "{refusal}");
    }
}
