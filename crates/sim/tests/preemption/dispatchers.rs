//! Several dispatchers, each feeding workers of its own (Concord § 6): they equal as many servers of one
//! dispatcher, each with a part of the Poisson stream that is Poisson again.

use super::{experiment, flood, policy};
use headway_report::stats::mean_interval;
use headway_sim::{Costs, Experiment, Outcome, available_threads, in_parallel};
use headway_workload::{Class, Offered, ServiceDistribution, Workload};

fn exponential() -> Workload {
    let service = ServiceDistribution::Exponential { mean_ns: 10_000 };
    Workload::new("exponential", vec![Class::new("request", 1.0, service)])
}

fn concord(experiment: &Experiment, params: &str) -> Outcome {
    let mut experiment = experiment.clone();
    experiment.policy = policy(&format!("concord,{params}"));
    experiment.run().expect("it runs")
}

/// Probability of waiting in M/M/c (Erlang 1917).
fn erlang_c(workers: usize, load: f64) -> f64 {
    let offered = load * workers as f64;
    let b = (1..=workers).fold(1.0, |b, n| offered * b / (n as f64 + offered * b));
    b / (1.0 - load * (1.0 - b))
}

/// Nothing costs anything, nobody is interrupted, dispatchers only dispatch: n servers M/M/(W/n).
#[test]
fn free_dispatchers_are_so_many_smaller_servers() {
    const LOAD: f64 = 0.8;
    let free = "k=1,q=3600s,notif=0,switch=0,next=0,dispatcher=dedicated";
    for (workers, dispatchers) in [(8, 2), (9, 3), (4, 4)] {
        let base = experiment(exponential())
            .workers(workers)
            .load(LOAD)
            .requests(200_000);
        let seeds: Vec<u64> = (1..=12).collect();
        let outcomes = in_parallel(
            &seeds,
            available_threads(),
            |seed: &u64| {
                let params = format!("{free},dispatchers={dispatchers}");
                concord(&base.clone().seed(*seed), &params)
            },
            |_, _| {},
        );
        let waits: Vec<f64> = outcomes
            .iter()
            .map(|outcome| outcome.run.overall.latency_us.mean - 10.0)
            .collect();
        let interval = mean_interval(&waits, 0.99).expect("replications");
        let each = workers / dispatchers;
        let expected = erlang_c(each, LOAD) * 10.0 / (each as f64 * (1.0 - LOAD));
        assert!(
            interval.lo <= expected && expected <= interval.hi,
            "{dispatchers} dispatchers of {each} workers: theory {expected:.2} us, simulated {interval:?}"
        );
    }
}

/// What is said of the whole is the sum over its parts, and a worker that idles while a request waits for
/// another's dispatcher is wasted: four servers of one worker waste as hashed queues do.
#[test]
fn figures_are_those_of_the_whole() {
    let base = experiment(exponential())
        .workers(4)
        .load(0.8)
        .requests(200_000);
    let params = "k=1,q=2us,notif=0,switch=0,next=0,dispatcher=dedicated,dispatchers=4";
    let outcome = concord(&base, params);
    assert_eq!(outcome.run.meta.workers, 4);
    assert!((outcome.run.meta.utilization - 0.8).abs() < 0.01);
    assert!(outcome.run.meta.preemptions > 0);
    let mut hashed = base.clone();
    hashed.policy = policy("d-fcfs");
    let hashed = hashed.run().expect("it runs");
    let ratio = outcome.wasted_cores / hashed.wasted_cores;
    // Exponential requests: sharing a worker and a queue at it hold as many.
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

/// 500 ns a request are 2 Mrps for one dispatcher, twice as much for two.
#[test]
fn two_dispatchers_sustain_twice_the_rate_of_one() {
    let costs = Costs {
        dispatch_ns: 500,
        ..Costs::default()
    };
    let base = experiment(Workload::named("fixed-1us").expect("it is known"))
        .workers(14)
        .requests(400_000)
        .costs(costs);
    let overloaded = |dispatchers: u64, mrps: f64| {
        let offered = Offered::Rate(mrps * 1e6);
        let params = format!("dispatcher=dedicated,dispatchers={dispatchers}");
        let outcome = concord(&base.clone().offered(offered), &params);
        outcome.run.meta.overloaded
    };
    for dispatchers in [1, 2] {
        let saturation_mrps = 2.0 * dispatchers as f64;
        assert!(!overloaded(dispatchers, 0.9 * saturation_mrps));
        assert!(overloaded(dispatchers, 1.1 * saturation_mrps));
    }
}

/// Saturated, every free dispatcher that works is one more worker, beside those it feeds.
#[test]
fn every_dispatcher_works() {
    let saturated = flood().workers(4).requests(5_000);
    let last = |dispatcher: &str| {
        let costs = "notif=0,switch=0,next=0,q=1ms,dispatchers=2";
        let outcome = concord(&saturated, &format!("{costs},dispatcher={dispatcher}"));
        outcome.run.overall.latency_us.max
    };
    let ratio = last("dedicated") / last("works");
    assert!((ratio - 3.0 / 2.0).abs() < 0.01, "{ratio}");
}

/// Seven workers of three dispatchers: parts of two, two and three get what their workers can do.
#[test]
fn uneven_parts_get_their_share() {
    let base = experiment(exponential())
        .workers(7)
        .load(0.93)
        .requests(400_000);
    let params = "dispatcher=dedicated,notif=0,switch=0,next=0,dispatchers=3";
    assert!(!concord(&base, params).run.meta.overloaded);
}
