//! Requests simulated per second on one core, histograms included.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headway_sim::Experiment;
use headway_workload::Workload;

fn engine(criterion: &mut Criterion) {
    const REQUESTS: u64 = 1_000_000;
    let mut group = criterion.benchmark_group("high-bimodal, 14 workers, load 0.8");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(REQUESTS));
    for policy in [
        "c-fcfs",
        "darc",
        "darc-stable",
        "fixed-priority",
        "d-fcfs",
        "work-stealing",
        "ps",
        "srpt",
        "shinjuku-sq,q=5us,cost=1us",
        "concord",
        "tiny-quanta",
        "tardis",
        "synergy",
    ] {
        let workload = Workload::named("high-bimodal").expect("a workload of the literature");
        let spec = policy.parse().expect("a policy");
        let experiment = Experiment::new(workload, spec)
            .workers(14)
            .load(0.8)
            .requests(REQUESTS);
        group.bench_function(policy, |bencher| {
            bencher.iter(|| experiment.run().expect("a valid experiment"));
        });
    }
}

criterion_group!(benches, engine);
criterion_main!(benches);
