//! The three roles suffice: every system of the literature that has no file of its own yet, as a
//! sketch that compiles against them and is held, in virtual time, to what theory says of it.
//! These are tests, not products; the real systems get files under `crates/policy/src`.

mod audit;
mod concord;
mod quantum;
mod shinjuku;
mod synergy;
mod tardis;
mod tiny_quanta;

use audit::{Sight, audited};
use headway_policy::role::Monitor;
use headway_policy::systems::System;
use headway_report::stats::mean_interval;
use headway_sim::{Experiment, Outcome, available_threads, in_parallel};
use headway_workload::{Class, Service, Workload};

/// Several workers near saturation, shorts behind longs: everything that may happen does.
fn bimodal() -> Experiment {
    let workload = Workload::named("high-bimodal").expect("a workload of the literature");
    experiment(workload).workers(4).load(0.85).requests(50_000)
}

fn experiment(workload: Workload) -> Experiment {
    Experiment::new(workload, "c-fcfs".parse().expect("a policy"))
}

/// The class of `bimodal` that takes 100 µs.
const LONG: u16 = 1;

/// The same system under a monitor.
fn under<I, L, M: Monitor>(name: &'static str, base: System<I, L>, monitor: M) -> System<I, L, M> {
    System {
        name,
        params: base.params,
        ingress: base.ingress,
        locals: base.locals,
        monitor,
        depth: base.depth,
    }
}

/// Both treated every request alike, to the nanosecond.
#[track_caller]
fn assert_same(one: &Outcome, other: &Outcome) {
    assert_eq!(one.run.classes, other.run.classes);
    assert_eq!(one.run.overall, other.run.overall);
    assert_eq!(one.run.meta.preemptions, other.run.meta.preemptions);
}

/// One worker that shares itself: a request of length x stays x / (1 − ρ) on average, whatever
/// the others are (Kleinrock 1967). Slices are finite: the last round may cost one more of each.
fn assert_processor_sharing(slice_ns: u64, run: impl Fn(&Experiment) -> Outcome + Sync) {
    const LOAD: f64 = 0.7;
    const PROBES_NS: [u64; 3] = [5_000, 10_000, 40_000];
    let mut classes = vec![Class::new(
        "exponential",
        0.94,
        Service::Exponential { mean_ns: 10_000 },
    )];
    for mean_ns in PROBES_NS {
        let service = Service::Constant { mean_ns };
        classes.push(Class::new(format!("{mean_ns} ns"), 0.02, service));
    }
    let shared = experiment(Workload::new("sharing", classes))
        .workers(1)
        .load(LOAD)
        .requests(30_000);
    let seeds: Vec<u64> = (1..=12).collect();
    let one = |seed: &u64| run(&shared.clone().seed(*seed)).run;
    let runs = in_parallel(&seeds, available_threads(), one, |_, _| {});
    for (probe, service_ns) in PROBES_NS.into_iter().enumerate() {
        let expected_ns = service_ns as f64 / (1.0 - LOAD);
        let stays: Vec<f64> = runs
            .iter()
            .map(|run| run.classes[probe + 1].latency_us.mean * 1e3)
            .collect();
        let interval = mean_interval(&stays, 0.99).expect("replications");
        let round_ns = slice_ns as f64 / (1.0 - LOAD);
        assert!(
            interval.lo - round_ns <= expected_ns && expected_ns <= interval.hi + round_ns,
            "{service_ns} ns: theory {expected_ns:.0} ns, simulated {interval:?}"
        );
    }
}
