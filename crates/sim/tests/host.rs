//! Hosts in virtual time, held to theory and to the Shenango paper.

use headway_sim::host::figures::{self, FigureEffort};
use headway_sim::host::{
    App, HostCosts, HostExperiment, HostOutcome, RateStep, least_cores_in_theory, mmc_p_wait,
};
use headway_workload::{Phase, Trace, Workload};

const EFFORT: FigureEffort = FigureEffort {
    duration_ms: 150,
    seed: 1,
    threads: 2,
    cutoff: None,
};

fn spin() -> Workload {
    Workload::named("exponential-10us").unwrap()
}

fn host(cores: usize, policy: &str) -> HostExperiment {
    HostExperiment::new(cores, policy.parse().unwrap())
}

fn p999_us(outcome: &HostOutcome) -> f64 {
    outcome.apps[0].latency_us.unwrap().p999
}

/// One application on static cores, stealing at no cost, is an M/M/c queue.
#[test]
fn a_static_host_is_the_queue_of_theory() {
    let experiment = host(4, "static")
        .app(
            App::server("spin", spin(), 300_000.0)
                .guaranteed(4)
                .policy("c-fcfs".parse().unwrap()),
        )
        .costs(HostCosts::FREE)
        .duration_ms(3_000);
    let outcome = experiment.run().unwrap();
    let (offered, service_us) = (3.0, 10.0);
    let expected_us = service_us + mmc_p_wait(offered, 4) * service_us / (4.0 - offered);
    let mean_us = outcome.apps[0].latency_us.unwrap().mean;
    assert!(
        (mean_us / expected_us - 1.0).abs() < 0.03,
        "{mean_us} µs, theory {expected_us}"
    );
    assert!((outcome.apps[0].efficiency - 0.75).abs() < 0.01);
    assert!((outcome.apps[0].allocated_cores - 4.0).abs() < 1e-6);
    assert_eq!(outcome.apps[0].unfinished, 0);
}

/// Guaranteed nothing, an application that serves requests has the cores that it needs, and a batch application what is left.
#[test]
fn requests_come_before_batch_work_without_a_guarantee() {
    let outcome = host(4, "shenango")
        .app(App::server("kv", spin(), 120_000.0))
        .app(App::batch("batch"))
        .duration_ms(100)
        .run()
        .unwrap();
    let (kv, batch) = (&outcome.apps[0], &outcome.apps[1]);
    // 1.2 cores of work.
    assert!(kv.allocated_cores > 1.2, "{}", kv.allocated_cores);
    assert!(p999_us(&outcome) < 200.0, "{} µs", p999_us(&outcome));
    assert!(batch.allocated_cores > 1.0, "{}", batch.allocated_cores);
}

/// A batch application that heeds no signal keeps its cores until it is moved away: requests wait that long, and no longer.
#[test]
fn who_refuses_to_leave_is_moved_away() {
    let with_batch = |batch: App, policy: &str| {
        host(2, policy)
            .app(App::server("kv", spin(), 40_000.0))
            .app(batch)
            .duration_ms(100)
            .run()
            .unwrap()
    };
    let heeds = with_batch(App::batch("batch"), "shenango");
    assert_eq!(heeds.apps[1].evictions_per_s, 0.0);
    let refuses = with_batch(App::batch("batch").refusing(), "shenango");
    assert!(refuses.apps[1].evictions_per_s > 100.0);
    let sooner = with_batch(App::batch("batch").refusing(), "shenango,evict=20us");
    let (heeds, refuses, sooner) = (p999_us(&heeds), p999_us(&refuses), p999_us(&sooner));
    assert!(
        sooner > heeds && refuses > sooner + 50.0,
        "{heeds} {sooner} {refuses}"
    );
    assert!(refuses < 400.0, "{refuses} µs");
}

/// The applications' cores and the free cores add up to the host's, under every allocator.
#[test]
fn cores_are_conserved() {
    for policy in ["static", "interval,period=5ms", "shenango"] {
        let outcome = host(8, policy)
            .app(App::server("a", spin(), 200_000.0).guaranteed(3))
            .app(App::server("b", spin(), 100_000.0).guaranteed(2))
            .app(App::batch("batch").most(6))
            .duration_ms(60)
            .run()
            .unwrap();
        let allocated: f64 = outcome.apps.iter().map(|app| app.allocated_cores).sum();
        assert!(
            (allocated + outcome.host.idle_cores - 8.0).abs() < 1e-6,
            "{policy}"
        );
        assert!(
            outcome.host.idle_cores > -1e-6,
            "{policy}: {}",
            outcome.host.idle_cores
        );
        for app in &outcome.apps {
            assert!(
                app.useful_cores <= app.allocated_cores + 1e-3,
                "{policy}: {app:?}"
            );
            assert_eq!(app.unfinished, 0, "{policy}: every request is served");
        }
    }
}

#[test]
fn the_same_experiment_gives_the_same_figures() {
    let json = || {
        let experiment = host(6, "shenango")
            .app(App::server("a", spin(), 200_000.0).guaranteed(4))
            .app(App::batch("batch"))
            .duration_ms(20);
        serde_json::to_string(&experiment.run().unwrap()).unwrap()
    };
    assert_eq!(json(), json());
}

/// § 7.1: what the server does not use, the batch application has, and it hardly costs the server anything.
#[test]
fn a_batch_application_gets_the_rest() {
    for rate in [100_000.0, 400_000.0, 800_000.0] {
        let alone = host(14, "static").app(App::server("spin", spin(), rate).guaranteed(14));
        let shared = host(14, "shenango")
            .app(App::server("spin", spin(), rate).guaranteed(14))
            .app(App::batch("swaptions"));
        let (alone, shared) = (alone.run().unwrap(), shared.run().unwrap());
        let left = 14.0 - rate / 1e5;
        let batch = shared.apps[1].useful_cores;
        assert!(
            batch > 0.6 * left && batch < left,
            "{batch} of {left} cores at {rate} rps"
        );
        assert!(!shared.run.meta.overloaded);
        assert!(
            p999_us(&shared) < p999_us(&alone) + 60.0,
            "{} µs",
            p999_us(&shared)
        );
    }
}

/// A guarantee holds against any burst of a neighbour.
#[test]
fn a_neighbours_burst_does_not_reach_a_guarantee() {
    let calm = App::server("calm", spin(), 200_000.0).guaranteed(6);
    let quiet = host(12, "shenango")
        .app(calm.clone())
        .app(App::server("other", spin(), 1_000.0).guaranteed(4));
    let storm = host(12, "shenango")
        .app(calm)
        .app(App::server("other", spin(), 900_000.0).guaranteed(4));
    let (quiet, storm) = (quiet.run().unwrap(), storm.run().unwrap());
    assert!(
        storm.apps[1].allocated_cores > 6.0,
        "it bursts beyond its guarantee"
    );
    assert!(
        p999_us(&storm) < p999_us(&quiet) + 25.0,
        "{} and {} µs",
        p999_us(&quiet),
        p999_us(&storm)
    );
}

/// § 7.2: from 100 000 to 5 million requests per second Shenango's tail stays bounded, and an allocator
/// that looks every 50 ms is milliseconds behind after a fifth of that.
#[test]
fn only_a_fast_allocator_survives_a_load_step() {
    let bursts = figures::load_step(&[1_000_000.0, 5_000_000.0], 120, EFFORT).unwrap();
    let worst = |system: &str, raised: f64| {
        let burst = bursts
            .iter()
            .find(|b| b.system == system && b.raised_rps == raised);
        burst.unwrap().worst_p999_us()
    };
    assert!(worst("Shenango", 1e6) < 125.0, "{}", worst("Shenango", 1e6));
    assert!(worst("Shenango", 5e6) < 125.0, "{}", worst("Shenango", 5e6));
    assert!(worst("Arachne", 5e6) > 5_000.0, "{}", worst("Arachne", 5e6));
}

/// § 2: mostly idle cores absorb bursts under a slow allocator, the more the fewer cores there are.
#[test]
fn shenango_is_more_efficient_than_the_best_slow_allocator() {
    let loads = [0.5, 1.0, 1.5, 2.5, 3.5];
    let found = figures::efficiency(&loads, EFFORT).unwrap();
    for (bound, point) in found.bound.iter().zip(&found.shenango) {
        let bound = bound.unwrap();
        let efficiency = point.outcome.apps[0].efficiency;
        assert!(bound.cores <= least_cores_in_theory(bound.offered_cores, 10.0));
        assert!(efficiency > bound.efficiency, "{efficiency} and {bound:?}");
    }
}

/// § 7.3, Figure 8: the tail grows with the interval.
#[test]
fn a_longer_interval_costs_tail_latency() {
    let points = figures::allocation_interval(&[5, 25, 50, 100], 600_000.0, EFFORT).unwrap();
    let tails: Vec<f64> = points.iter().map(|point| p999_us(&point.outcome)).collect();
    assert!(tails.is_sorted(), "{tails:?}");
    assert!(tails[3] > tails[0] + 100.0, "{tails:?}");
}

/// Figure 7: stealing makes up for few flows.
#[test]
fn stealing_evens_out_few_flows() {
    let curves = figures::few_connections(&[24, 1200], &[800_000.0], EFFORT).unwrap();
    let tail = |index: usize| p999_us(&curves[index].1[0].outcome);
    assert!(tail(0) < 1.3 * tail(1), "{} and {} µs", tail(0), tail(1));
}

#[test]
fn a_policy_that_would_strand_requests_is_refused() {
    let experiment =
        host(4, "shenango").app(App::server("a", spin(), 1e5).policy("d-fcfs".parse().unwrap()));
    let error = experiment.run().unwrap_err().to_string();
    assert!(
        error.contains("d-fcfs") && error.contains("central queue"),
        "{error}"
    );
}

#[test]
fn limits_and_rates_are_checked() {
    let app = |guaranteed| App::server("a", spin(), 1e5).guaranteed(guaranteed);
    let too_many = host(4, "shenango")
        .app(app(3))
        .app(app(3))
        .run()
        .unwrap_err();
    assert_eq!(
        too_many.to_string(),
        "6 cores are guaranteed, but there are only 4"
    );
    let negative = app(1).steps(&[RateStep {
        lasts_ns: 1,
        rate_rps: -1.0,
    }]);
    assert!(host(4, "shenango").app(negative).run().is_err());
    assert!(host(4, "shenango").run().is_err(), "no application");
}

#[test]
fn a_trace_is_refused() {
    let trace = Trace::from_csv_str("time,class,service\n0,GET,1\n5,GET,2\n", "t.csv").unwrap();
    let error = host(4, "shenango")
        .app(App::server("kv", trace.into_workload("t"), 1e3))
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'kv'") && error.contains("replayed at the times it recorded"),
        "{error}"
    );
}

/// Phases of one mean service time at one rate are offered as the workload says; any others are refused.
#[test]
fn phases_that_a_host_does_not_follow_are_refused() {
    let with = |means: [&str; 2], steps: usize| {
        let phase = |name: &str| Phase {
            duration_ns: 10_000_000,
            classes: Workload::named(name).unwrap().classes,
        };
        let mut workload = Workload::named(means[0]).unwrap();
        workload.phases = means.map(phase).into();
        let step = RateStep {
            lasts_ns: 10_000_000,
            rate_rps: 100_000.0,
        };
        let app = App::server("kv", workload, 100_000.0).steps(&vec![step; steps]);
        host(4, "shenango").app(app).duration_ms(20).run()
    };
    assert!(with(["exponential-10us", "exponential-10us"], 1).is_ok());
    let error = |means, steps| with(means, steps).unwrap_err().to_string();
    let steps = error(["exponential-10us", "exponential-10us"], 2);
    assert!(steps.contains("at one rate"), "{steps}");
    let means = error(["exponential-10us", "fixed-1us"], 1);
    assert!(means.contains("one mean service time"), "{means}");
}
