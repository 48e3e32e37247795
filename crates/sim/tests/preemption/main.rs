//! Systems that interrupt requests, each held in virtual time, with books kept, to what theory
//! and its paper say of it.

mod audit;
mod concord;
mod dispatchers;
mod properties;
mod shinjuku;
mod synergy;
mod tardis;
mod tiny_quanta;

use audit::{Sight, audited};
use headway_policy::PolicySpec;
use headway_policy::spec::Spec;
use headway_report::stats::mean_interval;
use headway_sim::{Experiment, Outcome, available_threads, in_parallel};
use headway_workload::{Class, ServiceDistribution, Workload};

/// Several workers near saturation, shorts behind longs: everything that may happen does.
fn bimodal() -> Experiment {
    let workload = Workload::named("high-bimodal").expect("a workload of the literature");
    experiment(workload).workers(4).load(0.85).requests(50_000)
}

fn experiment(workload: Workload) -> Experiment {
    Experiment::new(workload, policy("c-fcfs"))
}

fn spec(text: &str) -> Spec {
    text.parse().expect("a spec")
}

fn policy(text: &str) -> PolicySpec {
    text.parse().expect("a policy")
}

/// One worker that something always waits for, with requests of 20 µs.
fn flood() -> Experiment {
    let service = ServiceDistribution::Constant { mean_ns: 20_000 };
    let workload = Workload::new("constant", vec![Class::new("request", 1.0, service)]);
    experiment(workload)
        .workers(1)
        .load(5_000.0)
        .requests(1_000)
}

/// The class of `bimodal` that takes 100 µs.
const LONG: u16 = 1;

/// Something waits that could run instead, at the ingress or at the worker itself.
fn something_waits(sight: &Sight) -> bool {
    sight.waiting + sight.own > 0
}

/// Nobody but the worker itself decides.
fn never(_: &Sight) -> bool {
    false
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
        ServiceDistribution::Exponential { mean_ns: 10_000 },
    )];
    for mean_ns in PROBES_NS {
        let service = ServiceDistribution::Constant { mean_ns };
        classes.push(Class::new(format!("{mean_ns} ns"), 0.02, service));
    }
    let shared = experiment(Workload::new("sharing", classes))
        .workers(1)
        .load(LOAD)
        .requests(30_000);
    let seeds: Vec<u64> = (1..=12).collect();
    let runs = in_parallel(
        &seeds,
        available_threads(),
        |seed: &u64| run(&shared.clone().seed(*seed)).run,
        |_, _| {},
    );
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
