//! No simulated policy is better than the bounds that the plan calls impossible to beat.

use headway_plan::{Due, Question, fcfs_max_ns, impossible, least_late, srpt_mean_ns};
use headway_policy::server::systems::NAMES;
use headway_report::{Impossible, Run, ShownBy, Summary, nearest_rank};
use headway_sim::{Costs, Experiment, Offered};
use headway_workload::{Arrival, Class, Generator, ServiceDistribution, Workload};
use proptest::prelude::*;

/// Not whole tens: the warm-up is rounded.
const REQUESTS: u64 = 3_007;
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

fn service() -> impl Strategy<Value = ServiceDistribution> {
    let mean_ns = 300_u64..60_000;
    prop_oneof![
        mean_ns
            .clone()
            .prop_map(|mean_ns| ServiceDistribution::Constant { mean_ns }),
        mean_ns
            .clone()
            .prop_map(|mean_ns| ServiceDistribution::Exponential { mean_ns }),
        (mean_ns.clone(), 0.2_f64..4.0)
            .prop_map(|(mean_ns, cv)| ServiceDistribution::Lognormal { mean_ns, cv }),
        (mean_ns.clone(), mean_ns).prop_map(|(a, b)| ServiceDistribution::Uniform {
            min_ns: a.min(b),
            max_ns: a.max(b) + 1,
        }),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    prop::collection::vec((service(), 0.05_f64..1.0), 1..4).prop_map(|drawn| {
        let all: f64 = drawn.iter().map(|(_, weight)| weight).sum();
        Workload::new(
            "drawn",
            drawn
                .into_iter()
                .enumerate()
                .map(
                    |(at, (service, weight)): (usize, (ServiceDistribution, f64))| {
                        Class::new(["a", "b", "c"][at], weight / all, service)
                    },
                )
                .collect(),
        )
    })
}

/// The requests of a class, or all.
fn of(arrivals: &[Arrival], class: Option<u16>) -> Vec<&Arrival> {
    arrivals
        .iter()
        .filter(|arrival: &&Arrival| class.is_none_or(|class| arrival.class == class))
        .collect()
}

/// How many must exceed what the run says that no more than a percentile's share did.
fn holds(
    latency_us: &Summary,
    slowdown: &Summary,
    requests: &[&Arrival],
    workers: usize,
) -> Result<(), TestCaseError> {
    let count = requests.len() as u64;
    if count == 0 {
        return Ok(());
    }
    let latencies = [
        latency_us.p50,
        latency_us.p90,
        latency_us.p99,
        latency_us.p999,
    ];
    let slowdowns = [slowdown.p50, slowdown.p90, slowdown.p99, slowdown.p999];
    for ((quantile, latency_us), slowdown) in QUANTILES.into_iter().zip(latencies).zip(slowdowns) {
        let late = |within: &dyn Fn(&Arrival) -> f64| {
            let due = |arrival: &&Arrival| Due {
                at_ns: arrival.at_ns,
                service_ns: arrival.service_ns,
                within_ns: libm::ceil(within(arrival)) as u64,
            };
            let due: Vec<Due> = requests.iter().map(due).collect();
            least_late(&due, workers) as u64
        };
        let may = count - nearest_rank(count, quantile);
        let by_latency = late(&|_| latency_us * 1e3);
        prop_assert!(
            by_latency <= may,
            "p{quantile} {latency_us} µs: {by_latency} of {count} late"
        );
        let by_slowdown = late(&|arrival| (slowdown + 0.5e-3) * arrival.service_ns as f64);
        prop_assert!(
            by_slowdown <= may,
            "p{quantile} slowdown {slowdown}: {by_slowdown} of {count} late"
        );
    }
    let pairs: Vec<(u64, u64)> = requests.iter().map(|a| (a.at_ns, a.service_ns)).collect();
    let mean_us = srpt_mean_ns(&pairs, workers) / 1e3;
    prop_assert!(
        latency_us.mean >= mean_us * (1.0 - 1e-12),
        "{} {mean_us}",
        latency_us.mean
    );
    prop_assert!(latency_us.max >= fcfs_max_ns(&pairs, workers) / 1e3 * (1.0 - 1e-12));
    Ok(())
}

fn run(workload: &Workload, policy: &str, workers: usize, offered: Offered, seed: u64) -> Run {
    let mut experiment = Experiment::new(workload.clone(), policy.parse().unwrap())
        .workers(workers)
        .offered(offered)
        .requests(REQUESTS)
        .seed(seed);
    experiment.warm_up = 0.0;
    experiment.run().unwrap().run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_policy_is_better(
        workload in workload(),
        policy in prop::sample::select(NAMES),
        workers in 1_usize..9,
        load in 0.1_f64..1.3,
        seed in 0_u64..1_000,
    ) {
        // A dispatcher that runs requests counts as one more worker.
        let policy = if policy == "concord" { "concord,dispatcher=dedicated" } else { policy };
        let offered = Offered::Load { load, workers };
        let run = run(&workload, policy, workers, offered, seed);
        let arrivals: Vec<Arrival> = Generator::new(&workload, offered, seed).take(REQUESTS as usize).collect();
        holds(&run.overall.latency_us, &run.overall.slowdown, &of(&arrivals, None), workers)?;
        for (class, figures) in run.classes.iter().enumerate() {
            let requests = of(&arrivals, Some(class as u16));
            holds(&figures.latency_us, &figures.slowdown, &requests, workers)?;
        }
    }
}

/// Figures of a run as bounds of an SLO.
fn as_bounds(scope: &str, latency_us: &Summary, slowdown: &Summary) -> String {
    let bounds = [
        format!("latency.mean<={}us", latency_us.mean),
        format!("latency.p50<={}us", latency_us.p50),
        format!("latency.p99<={}us", latency_us.p99),
        format!("latency.max<={}us", latency_us.max),
        format!("slowdown.p90<={}", slowdown.p90),
        format!("slowdown.p999<={}", slowdown.p999),
    ];
    bounds.map(|bound| format!("{scope}.{bound}")).join(",")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The bounds never exclude a result that a policy reached on the same arrivals, with overheads, a network and a warm-up.
    #[test]
    fn what_was_done_can_be_done(
        workload in workload(),
        policy in prop::sample::select(&["c-fcfs", "d-fcfs", "srpt", "darc", "synergy", "concord,dispatcher=works"][..]),
        workers in 1_usize..6,
        load in 0.3_f64..0.99,
        (overhead_ns, network_ns) in (0_u64..200, 0_u64..10_000),
        seed in 0_u64..1_000,
    ) {
        let offered = Offered::Load { load, workers };
        let costs = Costs { overhead_ns, ..Costs::default() };
        let mut experiment = Experiment::new(workload.clone(), policy.parse().unwrap())
            .workers(workers)
            .offered(offered)
            .requests(REQUESTS)
            .costs(costs)
            .seed(seed);
        experiment.network_ns = network_ns;
        let run = experiment.run().unwrap().run;
        let mut slo = vec![as_bounds("overall", &run.overall.latency_us, &run.overall.slowdown)];
        for class in &run.classes {
            slo.push(as_bounds(&format!("class.{}", class.name), &class.latency_us, &class.slowdown));
        }
        let question = Question {
            requests: REQUESTS,
            replications: 1,
            seed,
            costs: costs.into(),
            network_ns,
            policies: Some(vec![policy.parse().unwrap()]),
            ..Question::new(workload, slo.join(",").parse().unwrap(), workers, offered)
        };
        // The service times are those of the distribution there, not of the few drawn.
        let by_arrivals = |one: &Impossible| {
            !matches!(one.shown_by, ShownBy::ServiceTime | ShownBy::Utilization)
        };
        let shown: Vec<_> = impossible(&question).into_iter().filter(by_arrivals).collect();
        prop_assert!(shown.is_empty(), "{shown:?}");
    }
}

/// The least latency that a percentile can have as far as the bound knows, ns.
fn least_percentile_ns(requests: &[&Arrival], workers: usize, quantile: f64) -> u64 {
    let count = requests.len() as u64;
    let may = count - nearest_rank(count, quantile);
    let can = |within_ns: u64| {
        let due = |arrival: &&Arrival| Due {
            at_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            within_ns,
        };
        let due: Vec<Due> = requests.iter().map(due).collect();
        least_late(&due, workers) as u64 <= may
    };
    let (mut below, mut at) = (0, 1 << 40);
    while at - below > 1 {
        let middle = u64::midpoint(below, at);
        if can(middle) {
            at = middle;
        } else {
            below = middle;
        }
    }
    at
}

#[test]
fn the_bound_says_more_than_the_service_times_do_where_it_is_busy() {
    let workload = Workload::named("fixed-1us").unwrap();
    let percentile_us = |load, workers| {
        let offered = Offered::Load { load, workers };
        let arrivals: Vec<Arrival> = Generator::new(&workload, offered, 3).take(50_000).collect();
        let least_us = least_percentile_ns(&of(&arrivals, None), workers, 0.99) as f64 / 1e3;
        let experiment = Experiment::new(workload.clone(), "c-fcfs".parse().unwrap());
        let mut experiment = experiment
            .workers(workers)
            .offered(offered)
            .requests(50_000)
            .seed(3);
        experiment.warm_up = 0.0;
        (
            least_us,
            experiment.run().unwrap().run.overall.latency_us.p99,
        )
    };
    for (load, workers, at_least) in [(0.95, 1, 4.0), (0.98, 4, 1.5)] {
        let (least_us, fcfs_us) = percentile_us(load, workers);
        assert!(
            least_us > at_least && least_us <= fcfs_us,
            "{workers}: {least_us} {fcfs_us}"
        );
    }
    let (idle_us, _) = percentile_us(0.3, 4);
    assert_eq!(idle_us, 1.0);
}
