//! Requests simulated per second on one core through a rack of 10 × 12 workers, histograms included.

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

criterion_group!(benches, rack);
criterion_main!(benches);
