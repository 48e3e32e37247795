//! The cost of recording one request. The simulator completes ten million a second, so both
//! histograms together may take 8 of its 100 ns.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headway_report::{ClassMeta, Recorder};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

const REQUESTS: usize = 4096;

struct Request {
    class: usize,
    latency_ns: u64,
    service_ns: u64,
}

/// Extreme Bimodal with waits up to four services; `jitter` makes every service time different.
fn requests(jitter: bool) -> Vec<Request> {
    let mut rng = Pcg64Mcg::new(7);
    let mut below = |bound: u64| ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64;
    let mut request = || {
        let class = usize::from(below(1000) < 5);
        let mean_ns = [500, 500_000][class];
        let service_ns = if jitter {
            mean_ns / 2 + below(mean_ns)
        } else {
            mean_ns
        };
        Request {
            class,
            latency_ns: service_ns + below(4 * mean_ns),
            service_ns,
        }
    };
    (0..REQUESTS).map(|_| request()).collect()
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    for (name, jitter) in [
        ("recorder, constant service", false),
        ("recorder, varying service", true),
    ] {
        let requests = requests(jitter);
        let mut recorder =
            Recorder::new(&[ClassMeta::new("short", 500.0), ClassMeta::new("long", 5e5)]);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for request in black_box(&requests) {
                    recorder.record(request.class, request.latency_ns, request.service_ns);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
