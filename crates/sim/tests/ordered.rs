//! The orders of service and placements against queueing theory, and compositions against the
//! systems they are.

use headway_report::Run;
use headway_report::stats::mean_interval;
use headway_sim::{Experiment, available_threads, in_parallel};
use headway_workload::{Class, ServiceDistribution, Workload};

const MEAN_NS: u64 = 10_000;

fn one_class(policy: &str, workers: usize, load: f64, requests: u64) -> Experiment {
    let service = ServiceDistribution::Exponential { mean_ns: MEAN_NS };
    let workload = Workload::new("theory", vec![Class::new("request", 1.0, service)]);
    Experiment::new(workload, policy.parse().unwrap())
        .workers(workers)
        .load(load)
        .requests(requests)
}

/// Mean times in the system, in mean service times, of replications of different seeds.
fn sojourns(experiment: &Experiment, replications: u64) -> Vec<f64> {
    let seeds: Vec<u64> = (1..=replications).collect();
    in_parallel(
        &seeds,
        available_threads(),
        |&seed: &u64| {
            let run = experiment.clone().seed(seed).run().unwrap().run;
            run.overall.latency_us.mean * 1e3 / MEAN_NS as f64
        },
        |_, _| {},
    )
}

fn assert_sojourn(policy: &str, load: f64, expected: f64) {
    let times = sojourns(&one_class(policy, 1, load, 400_000), 12);
    let interval = mean_interval(&times, 0.99).unwrap();
    assert!(
        interval.lo <= expected && expected <= interval.hi,
        "{policy}, load {load}: theory {expected:.4}, simulated {interval:?}"
    );
}

/// ∫₀^∞ of `f` against sizes that are exponential of mean 1, ρ(x) = λ∫₀ˣ t e⁻ᵗ dt handed along,
/// and ∫₀ˣ dt/(1 − ρ(t)); by the trapezoid rule up to where nothing is left.
fn over_sizes(rate: f64, f: impl Fn(f64, f64, f64) -> f64) -> f64 {
    const STEP: f64 = 1e-4;
    let below = |x: f64| rate * (1.0 - (1.0 + x) * (-x).exp());
    let (mut sum, mut residence, mut x) = (0.0, 0.0, 0.0);
    while x < 40.0 {
        let middle = x + STEP / 2.0;
        residence += STEP / 2.0 / (1.0 - below(x + STEP / 4.0));
        sum += STEP * (-middle).exp() * f(middle, below(middle), residence);
        residence += STEP / 2.0 / (1.0 - below(x + 0.75 * STEP));
        x += STEP;
    }
    sum
}

/// Schrage and Miller 1966: `T(x) = λ(∫₀ˣ t²f + x²F̄(x)) / 2(1 − ρ(x))² + ∫₀ˣ dt/(1 − ρ(t))`.
#[test]
fn srpt_is_schrage_and_millers_formula() {
    for load in [0.5, 0.8] {
        assert_sojourn(
            "srpt",
            load,
            over_sizes(load, |x: f64, rho: f64, residence: f64| {
                let short = 2.0 - (-x).exp() * (x * x + 2.0 * x + 2.0);
                let cut = x * x * (-x).exp();
                load * (short + cut) / (2.0 * (1.0 - rho) * (1.0 - rho)) + residence
            }),
        );
    }
}

/// Phipps 1956 (Cobham's formula for a priority per size): `W(x) = λE[S²] / 2(1 − ρ(x))²`.
#[test]
fn sjf_is_phippss_formula() {
    for load in [0.5, 0.8] {
        assert_sojourn(
            "sjf",
            load,
            1.0 + over_sizes(load, |_, rho: f64, _| {
                load * 2.0 / (2.0 * (1.0 - rho) * (1.0 - rho))
            }),
        );
    }
}

/// With nothing to tell requests apart by, sizes guessed by class are no order at all: M/M/1.
#[test]
fn by_profile_one_class_is_first_come_first_served_in_the_mean() {
    // Every order that ignores sizes and wastes nothing has the same mean.
    for policy in [
        "sjf,size=profile",
        "edf",
        "drr",
        "wrr",
        "mlfq,cost=0",
        "gittins,cost=0",
        "edf,preemption=edf",
    ] {
        assert_sojourn(policy, 0.7, 1.0 / 0.3);
    }
}

/// Mitzenmacher 2001, Vvedenskaya et al. 1996: with many workers the mean time in the system is
/// `Σ ρ^((dⁱ − d)/(d − 1))`. The limit is off by order 1/workers.
#[test]
fn two_choices_are_the_supermarket_model() {
    for (load, draws) in [(0.7, 2), (0.9, 2), (0.9, 3)] {
        let exponent = |i: i32| f64::from((i32::pow(draws, i as u32) - draws) / (draws - 1));
        let expected: f64 = (1..=9).map(|i| f64::powf(load, exponent(i))).sum();
        let policy = format!("compose,placement=choices,choices={draws}");
        let times = sojourns(&one_class(&policy, 256, load, 1_000_000), 2);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!(
            (mean / expected - 1.0).abs() < 0.02,
            "{policy}, load {load}: limit {expected:.3}, simulated {mean:.3}"
        );
    }
}

/// Random placement splits a Poisson stream into independent ones.
#[test]
fn at_random_every_worker_is_m_m_1() {
    let times = sojourns(&one_class("compose,placement=random", 8, 0.6, 400_000), 8);
    let interval = mean_interval(&times, 0.99).unwrap();
    assert!((interval.lo..=interval.hi).contains(&2.5), "{interval:?}");
}

/// The known result about joining the shortest queue: better than two choices, worse than one queue.
#[test]
fn the_shortest_of_all_is_between_two_choices_and_one_queue() {
    let mean = |policy: &str| {
        let times = sojourns(&one_class(policy, 16, 0.8, 400_000), 4);
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (one, all) = (mean("c-fcfs"), mean("compose,placement=shortest"));
    let two = mean("compose,placement=choices");
    assert!(one < all && all < two, "{one} {all} {two}");
}

fn high_bimodal(policy: &str) -> Run {
    let workload = Workload::named("high-bimodal").unwrap();
    Experiment::new(workload, policy.parse().unwrap())
        .workers(14)
        .load(0.8)
        .requests(100_000)
        .run()
        .unwrap_or_else(|error| panic!("{error}"))
        .run
}

/// The same parts are the same system, to the last digit.
#[test]
fn compositions_of_a_named_systems_parts_are_that_system() {
    let pairs = [
        ("c-fcfs", "compose"),
        ("jbsq,k=2", "compose,placement=jbsq"),
        ("jbsq,k=1", "compose,placement=jbsq,k=1"),
        ("fixed-priority", "compose,discipline=typed"),
        (
            "darc-static,reserved=2",
            "compose,discipline=typed,placement=reserved,control=reserve,reserved=2",
        ),
        (
            "static-partition",
            "compose,discipline=typed,placement=reserved,control=partition",
        ),
        (
            "darc,window=5000",
            "compose,discipline=typed,placement=reserved,control=darc,window=5000",
        ),
        (
            "darc-stable,window=5000",
            "compose,discipline=typed,placement=jbsq,k=1,control=darc-stable,window=5000",
        ),
        ("shinjuku-sq,q=5us", "compose,preemption=quantum,q=5us"),
        ("sjf", "compose,discipline=sjf"),
        ("srpt", "compose,discipline=sjf,preemption=srpt"),
        ("shinjuku-sq,q=5us", "mlfq,levels=1,q=5us"),
    ];
    for (named, composed) in pairs {
        let (named_run, composed_run) = (high_bimodal(named), high_bimodal(composed));
        assert_eq!(
            named_run.overall, composed_run.overall,
            "{named} = {composed}"
        );
        assert_eq!(
            named_run.classes, composed_run.classes,
            "{named} = {composed}"
        );
    }
}

/// Of requests whose class says how long they take, what wants least goes first, as under SRPT; of those whose class does not, what had least, as by levels.
#[test]
fn gittins_is_srpt_where_classes_tell_lengths_and_feedback_where_they_do_not() {
    let mean_us = |workload: &str, policy: &str| {
        let workload = Workload::named(workload).unwrap();
        let experiment = Experiment::new(workload, policy.parse().unwrap());
        let experiment = experiment.workers(2).load(0.8).requests(200_000);
        experiment.run().unwrap().run.overall.latency_us.mean
    };
    let ratio = |workload: &str, other: &str| {
        mean_us(workload, "gittins,cost=0,q=500ns") / mean_us(workload, other)
    };
    for workload in ["high-bimodal", "tpcc", "pallas-trimodal"] {
        let to_srpt = ratio(workload, "srpt,size=profile");
        assert!((0.97..1.05).contains(&to_srpt), "{workload}: {to_srpt}");
        let to_levels = ratio(workload, "mlfq,cost=0,q=500ns");
        assert!(to_levels < 0.95, "{workload}: {to_levels}");
    }
    let to_levels = ratio("exponential-10us", "mlfq,cost=0,q=500ns");
    assert!((0.97..1.03).contains(&to_levels), "{to_levels}");
}

/// The purpose of each of these policies: short requests do not wait behind long ones.
#[test]
fn shorts_are_protected() {
    let short = |policy: &str| high_bimodal(policy).classes[0].slowdown.p99;
    let blocked = short("c-fcfs");
    for policy in ["srpt", "mlfq", "gittins", "sjf", "shinjuku-mq", "cscq"] {
        let protected = short(policy);
        assert!(
            protected < blocked / 2.0,
            "{policy}: {protected}, c-fcfs: {blocked}"
        );
    }
    // A short still waits for longs before it in the single queue, and for what interrupting costs.
    let at_once = short("on-blocked,cost=0");
    let late = short("on-blocked,cost=2us,propagation=2us");
    assert!(
        at_once < late && at_once < blocked,
        "{at_once} {late} {blocked}"
    );
}
