//! Cost of one arrival, by arrival process and service distribution.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headway_workload::{
    Arrival, Arrivals, Class, Generator, Offered, ServiceDistribution, Workload,
};

/// Arrivals per iteration: enough that the loop, not the clock, is measured.
const BATCH: usize = 1_000;

fn arrival(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("arrival");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, workload) in workloads() {
        let mut generator = Generator::new(&workload, Offered::Rate(1e6), 1);
        group.bench_function(name, |bencher| {
            bencher.iter(|| generator.by_ref().take(BATCH).for_each(consume));
        });
    }
    group.finish();
}

fn consume(arrival: Arrival) {
    black_box(
        arrival.at_ns ^ arrival.service_ns ^ u64::from(arrival.class) ^ u64::from(arrival.flow),
    );
}

fn workloads() -> Vec<(&'static str, Workload)> {
    let mut cases: Vec<_> = ["fixed-1us", "extreme-bimodal", "tpcc", "exponential-1us"]
        .into_iter()
        .map(|name| {
            (
                name,
                Workload::named(name).expect("a workload of the literature"),
            )
        })
        .collect();
    let one = |service| Workload::new("one", vec![Class::new("request", 1.0, service)]);
    let pareto = ServiceDistribution::Pareto {
        min_ns: 1_000,
        max_ns: 1_000_000,
        alpha: 1.2,
    };
    cases.push((
        "lognormal",
        one(ServiceDistribution::Lognormal {
            mean_ns: 1_000,
            cv: 2.0,
        }),
    ));
    cases.push(("pareto", one(pareto)));
    let constant = one(ServiceDistribution::Constant { mean_ns: 1_000 });
    cases.push((
        "gamma",
        Workload {
            arrivals: Arrivals::Gamma { cv: 5.0 },
            ..constant
        },
    ));
    cases
}

criterion_group!(benches, arrival);
criterion_main!(benches);
