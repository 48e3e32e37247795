//! Workers that are removed during a run: they begin nothing more, what waited at them is served once by the others, and they are no idle cores.

use headway_policy::WorkerId;
use headway_report::schedule::Runner;
use headway_sim::{CoreChange, Experiment, Outcome};
use headway_workload::Workload;

/// Policies whose workers take requests themselves, and some that leave short queues of others alone.
const PULLING: [&str; 7] = [
    "work-stealing",
    "work-stealing,steal=one",
    "synergy",
    "synergy,steal_threshold=4",
    "synergy,parts=cp+qa",
    "synergy,parts=ws,room=1",
    "tardis",
];

fn change(at_ns: u64, worker: u16, present: bool) -> CoreChange {
    CoreChange {
        at_ns,
        worker: WorkerId(worker),
        present,
    }
}

fn tpcc(policy: &str) -> Experiment {
    let workload = Workload::named("tpcc").unwrap();
    let experiment = Experiment::new(workload, policy.parse().unwrap());
    experiment.workers(8).load(0.7).requests(20_000)
}

fn finished(outcome: &Outcome) -> u64 {
    outcome.run.classes.iter().map(|class| class.count).sum()
}

#[test]
fn one_worker_that_is_left_does_all_the_work() {
    for policy in ["c-fcfs", "d-fcfs"].into_iter().chain(PULLING) {
        let mut experiment = tpcc(policy);
        experiment.core_changes = (1..8).map(|worker| change(0, worker, false)).collect();
        let outcome = experiment.run().unwrap();
        let used = outcome.run.meta.utilization * 8.0;
        assert!((0.9..=1.0).contains(&used), "{policy}: {used} workers");
        assert_eq!(finished(&outcome), 18_000, "{policy}");
        assert!(outcome.run.meta.overloaded, "{policy}");
    }
}

#[test]
fn a_racks_servers_lose_workers_that_take_requests_themselves() {
    for inner in PULLING {
        let mut experiment = tpcc(&format!("racksched,inner={inner}"));
        experiment = experiment.servers(2).workers(4);
        let gone = (0..8).filter(|worker| worker % 4 > 0);
        experiment.core_changes = gone.map(|worker| change(0, worker, false)).collect();
        let outcome = experiment.run().unwrap();
        let used = outcome.run.meta.utilization * 8.0;
        assert!((1.5..=2.0).contains(&used), "{inner}: {used} workers");
        assert_eq!(finished(&outcome), 18_000, "{inner}");
    }
}

/// Half of the workers go in an overload, when every queue has requests, and come back later.
#[test]
fn what_waits_at_a_removed_worker_is_the_others_until_it_is_back() {
    const GONE_NS: u64 = 5_000_000;
    const BACK_NS: u64 = 12_000_000;
    for policy in PULLING {
        let mut experiment = tpcc(policy).load(1.3);
        experiment.queue_limit = 1_000_000;
        experiment.trace_window = Some(0..20_000_000);
        let all_at = |at_ns, present| (4..8).map(move |worker| change(at_ns, worker, present));
        experiment.core_changes = all_at(GONE_NS, false)
            .chain(all_at(BACK_NS, true))
            .collect();
        let outcome = experiment.run().unwrap();
        assert_eq!(finished(&outcome), 18_000, "{policy}");
        let of_changing = |slice: &&headway_report::schedule::Slice| matches!(slice.runner, Runner::Worker(worker) if worker >= 4);
        let begun: Vec<u64> = outcome
            .slices
            .iter()
            .filter(of_changing)
            .map(|slice| slice.from_ns)
            .collect();
        let while_gone = begun
            .iter()
            .filter(|from| (GONE_NS + 1_000..BACK_NS).contains(from));
        assert_eq!(while_gone.count(), 0, "{policy}");
        let soon = BACK_NS..BACK_NS + 1_000_000;
        assert!(begun.iter().any(|from| soon.contains(from)), "{policy}");
        assert!(begun.iter().any(|from| *from < GONE_NS), "{policy}");
    }
}

/// Nobody is there for a while; then one worker is: in the middle of the arrivals, or long after the last.
#[test]
fn requests_wait_while_no_worker_is_there() {
    for policy in PULLING {
        let mut experiment = tpcc(policy).load(0.1);
        let gone = (0..8).map(|worker| change(3_000_000, worker, false));
        experiment.core_changes = gone.chain([change(6_000_000, 5, true)]).collect();
        let outcome = experiment.run().unwrap();
        assert_eq!(finished(&outcome), 18_000, "{policy}");
        // The limit of a worker's queue says nothing of those that waited for one. All share a queue under tardis, whose limit they met as they arrived.
        if policy == "tardis" {
            continue;
        }
        let mut experiment = tpcc(policy).load(0.1).requests(1_000);
        experiment.queue_limit = 100;
        let gone = (0..8).map(|worker| change(0, worker, false));
        experiment.core_changes = gone.chain([change(60_000_000_000, 5, true)]).collect();
        let outcome = experiment.run().unwrap();
        assert_eq!(finished(&outcome), 900, "{policy}");
    }
}

#[test]
fn a_removed_worker_is_no_idle_core() {
    for policy in ["c-fcfs", "work-stealing", "tardis", "sjf"] {
        let mut experiment = tpcc(policy);
        experiment.core_changes = vec![change(0, 0, false)];
        let outcome = experiment.run().unwrap();
        assert_eq!(outcome.wasted_cores, 0.0, "{policy}");
    }
    let mut rack = tpcc("racksched,inner=c-fcfs").servers(2).load(0.9);
    rack.core_changes = (4..16).map(|worker| change(0, worker, false)).collect();
    let wasted = rack.run().unwrap().wasted_cores;
    assert!(wasted <= 4.0, "{wasted} of 4 cores");
}
