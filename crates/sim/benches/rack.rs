//! Requests simulated per second on one core through a rack of 10 × 12 workers, histograms included; and the time that scoring
//! the candidates of `pallas` takes, which is the default of its `plan_time`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headway_sim::Experiment;
use headway_workload::Workload;

fn rack(criterion: &mut Criterion) {
    const REQUESTS: u64 = 1_000_000;
    let mut group = criterion.benchmark_group("high-bimodal, 10 × 12 workers, load 0.8");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(REQUESTS));
    for policy in ["random", "racksched", "draconis", "pallas,adapt=off"] {
        let workload = Workload::named("high-bimodal").expect("a workload of the literature");
        let spec = policy.parse().expect("a policy");
        let experiment = Experiment::new(workload, spec)
            .servers(10)
            .workers(12)
            .load(0.8)
            .requests(REQUESTS);
        group.bench_function(policy, |bencher| {
            bencher.iter(|| experiment.run().expect("a valid experiment"));
        });
    }
}

/// The first policy's candidates are scored by trials of full length; the 20 000 requests that follow take a few ms more.
fn planning(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scoring the candidates, 8 × 10 workers, load 0.8");
    group.sample_size(10);
    for name in [
        "pallas-normal",
        "pallas-port",
        "pallas-trimodal",
        "pallas-tpcc",
    ] {
        let workload = Workload::named(name).expect("a workload of the literature");
        let spec = "pallas,adapt=off".parse().expect("a policy");
        let experiment = Experiment::new(workload, spec)
            .servers(8)
            .workers(10)
            .load(0.8)
            .requests(20_000);
        group.bench_function(name, |bencher| {
            bencher.iter(|| experiment.run().expect("a valid experiment"));
        });
    }
}

criterion_group!(benches, rack, planning);
criterion_main!(benches);
