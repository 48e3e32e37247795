//! Against queueing theory: where there is a formula, the simulator gives it, within the
//! confidence interval of its replications.

use headway_report::stats::mean_interval;
use headway_sim::{Experiment, available_threads, in_parallel};
use headway_workload::{Class, ServiceDistribution, Workload};

const REPLICATIONS: u64 = 12;
const REQUESTS: u64 = 400_000;

/// Mean wait in queue, ns, with its 99 % interval over replications of different seeds.
fn assert_wait(
    policy: &str,
    service: ServiceDistribution,
    workers: usize,
    load: f64,
    expected_ns: f64,
) {
    let mean_ns = service.mean_ns();
    let workload = Workload::new("theory", vec![Class::new("request", 1.0, service)]);
    let experiment = Experiment::new(workload, policy.parse().unwrap())
        .workers(workers)
        .load(load)
        .requests(REQUESTS);
    let seeds: Vec<u64> = (1..=REPLICATIONS).collect();
    let waits = in_parallel(
        &seeds,
        available_threads(),
        |&seed| {
            let outcome = experiment.clone().seed(seed).run().unwrap();
            outcome.run.overall.latency_us.mean * 1e3 - mean_ns
        },
        |_, _| {},
    );
    let interval = mean_interval(&waits, 0.99).unwrap();
    assert!(
        interval.lo <= expected_ns && expected_ns <= interval.hi,
        "{policy}, {workers} workers, load {load}: theory {expected_ns:.1} ns, simulated {interval:?}"
    );
}

fn exponential(mean_ns: u64) -> ServiceDistribution {
    ServiceDistribution::Exponential { mean_ns }
}

/// Probability of waiting in M/M/c (Erlang 1917): `C = B / (1 − ρ(1 − B))`.
fn erlang_c(workers: usize, load: f64) -> f64 {
    let offered = load * workers as f64;
    let b = (1..=workers).fold(1.0, |b, n| offered * b / (n as f64 + offered * b));
    b / (1.0 - load * (1.0 - b))
}

#[test]
fn c_fcfs_is_m_m_c() {
    for (workers, load) in [(1, 0.5), (4, 0.7), (14, 0.8), (16, 0.9)] {
        let mean_ns = 10_000.0;
        let wait_ns = erlang_c(workers, load) * mean_ns / (workers as f64 * (1.0 - load));
        assert_wait("c-fcfs", exponential(10_000), workers, load, wait_ns);
    }
}

/// Pollaczek–Khinchine: `W = λ E[S²] / 2(1 − ρ)`.
#[test]
fn one_worker_is_m_g_1() {
    let services = [
        ServiceDistribution::Constant { mean_ns: 10_000 },
        exponential(10_000),
        ServiceDistribution::Lognormal {
            mean_ns: 10_000,
            cv: 1.5,
        },
        ServiceDistribution::Uniform {
            min_ns: 1_000,
            max_ns: 19_000,
        },
    ];
    for service in services {
        let load = 0.6;
        let rate_per_ns = load / service.mean_ns();
        let wait_ns = rate_per_ns * service.second_moment_ns2() / (2.0 * (1.0 - load));
        assert_wait("c-fcfs", service, 1, load, wait_ns);
    }
}

/// Hashed steering splits a Poisson stream into independent ones: n separate M/M/1 queues.
#[test]
fn d_fcfs_is_n_queues_m_m_1() {
    for load in [0.3, 0.7] {
        let wait_ns = load / (1.0 - load) * 10_000.0;
        assert_wait("d-fcfs", exponential(10_000), 8, load, wait_ns);
    }
}

/// Without classes to tell apart, every work-conserving dispatcher is the single queue, and so
/// is free and instant stealing as far as means go.
#[test]
fn with_one_class_they_are_all_the_single_queue() {
    let wait_ns = erlang_c(6, 0.75) * 10_000.0 / (6.0 * 0.25);
    for policy in [
        "fixed-priority",
        "darc,window=1000",
        "work-stealing",
        "jbsq,k=1",
    ] {
        assert_wait(policy, exponential(10_000), 6, 0.75, wait_ns);
    }
}

/// Cobham 1954: non-preemptive priority on one worker,
/// `W_k = λ E[S²] / 2(1 − σ_{k−1})(1 − σ_k)`, σ the load of classes up to k.
#[test]
fn fixed_priority_is_cobhams_formula() {
    let classes = [("short", 0.9, 1_000.0), ("long", 0.1, 20_000.0)];
    let load = 0.7;
    let mean_ns: f64 = classes.iter().map(|(_, share, ns)| share * ns).sum();
    let rate = load / mean_ns;
    let residual_ns: f64 = classes
        .iter()
        .map(|(_, share, ns)| rate * share * ns * ns / 2.0)
        .sum();
    let sigma = [0.0, rate * 0.9 * 1_000.0, load];
    let list = classes.iter().map(|&(name, share, ns)| {
        Class::new(
            name,
            share,
            ServiceDistribution::Constant { mean_ns: ns as u64 },
        )
    });
    let workload = Workload::new("cobham", list.collect());
    let experiment = Experiment::new(workload, "fixed-priority".parse().unwrap())
        .workers(1)
        .load(load)
        .requests(REQUESTS);
    let seeds: Vec<u64> = (1..=REPLICATIONS).collect();
    let run = |seed: &u64| experiment.clone().seed(*seed).run().unwrap().run;
    let runs = in_parallel(&seeds, available_threads(), run, |_, _| {});
    for (k, (name, _, service_ns)) in classes.into_iter().enumerate() {
        let expected_ns = residual_ns / ((1.0 - sigma[k]) * (1.0 - sigma[k + 1]));
        let waits: Vec<f64> = runs
            .iter()
            .map(|run: &headway_report::Run| run.classes[k].latency_us.mean * 1e3 - service_ns)
            .collect();
        let interval = mean_interval(&waits, 0.99).unwrap();
        assert!(
            interval.lo <= expected_ns && expected_ns <= interval.hi,
            "{name}: theory {expected_ns:.1} ns, simulated {interval:?}"
        );
    }
}

/// With exponential service the order of service does not matter: M/M/c and its processor sharing
/// hold as many requests on average.
#[test]
fn processor_sharing_is_m_m_c() {
    for (workers, load) in [(1, 0.5), (4, 0.7), (14, 0.8)] {
        let mean_ns = 10_000.0;
        let wait_ns = erlang_c(workers, load) * mean_ns / (workers as f64 * (1.0 - load));
        assert_wait("ps", exponential(10_000), workers, load, wait_ns);
    }
}

/// M/G/1-PS: a request of length x stays x / (1 − ρ), whatever the others are (Kleinrock 1967).
#[test]
fn processor_sharing_slows_all_alike() {
    const LOAD: f64 = 0.8;
    let workload = Workload::named("high-bimodal").unwrap();
    let experiment = Experiment::new(workload, "ps".parse().unwrap())
        .workers(1)
        .load(LOAD)
        .requests(REQUESTS);
    let seeds: Vec<u64> = (1..=REPLICATIONS).collect();
    let runs = in_parallel(
        &seeds,
        available_threads(),
        |seed: &u64| experiment.clone().seed(*seed).run().unwrap().run,
        |_, _| {},
    );
    for class in 0..2 {
        let slowdowns: Vec<f64> = runs
            .iter()
            .map(|r| r.classes[class].slowdown.mean)
            .collect();
        let interval = mean_interval(&slowdowns, 0.99).unwrap();
        let expected = 1.0 / (1.0 - LOAD);
        assert!(
            interval.lo <= expected && expected <= interval.hi,
            "class {class}: theory {expected}, simulated {interval:?}"
        );
    }
}
