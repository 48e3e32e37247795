//! The cost of a decision: arrive + poll + finish, a profile update, a reservation update.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use headway_policy::server::controls::{DarcRules, Profiler};
use headway_policy::server::reservation::{Profile, Rules, reserve};
use headway_policy::server::role::{Dispatch, Ingress};
use headway_policy::server::systems::{self, DarcParams, DarcStart};
use headway_policy::{BitSet, ClassId, Job, JobId, Order, Plan, Rng, Shape};
use std::hint::black_box;

const WORKERS: usize = 14;
const TPCC: [(u64, f64); 5] = [
    (5_700, 0.44),
    (6_000, 0.04),
    (20_000, 0.44),
    (88_000, 0.04),
    (100_000, 0.04),
];

fn tpcc() -> Shape {
    TPCC.iter()
        .fold(Shape::new(WORKERS), |shape, &(mean_ns, share)| {
            shape.class(mean_ns, share)
        })
}

/// A stream of requests through an ingress with ten of fourteen workers busy.
fn decision<I: Ingress>(criterion: &mut Criterion, name: &str, mut ingress: I) {
    let mut rng = Rng::new(1);
    let classes: Vec<u16> = (0..4096).map(|_| rng.below(5) as u16).collect();
    let mut running = std::collections::VecDeque::with_capacity(64);
    let (mut now_ns, mut next, mut id) = (0u64, 0, 0u32);
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            now_ns += 100;
            let class = classes[next & 4095];
            next += 1;
            id = (id + 1) & 0xFFF;
            let job = Job::new(JobId(id), ClassId(class), now_ns);
            let _ = black_box(ingress.arrived(now_ns, job));
            while let Some(Dispatch { worker, job }) = ingress.poll(now_ns) {
                running.push_back((worker, job));
            }
            if running.len() > 6 {
                let (worker, job) = running.pop_front().expect("some are running");
                ingress.finished(now_ns, worker, job, TPCC[usize::from(class)].0);
            }
        });
    });
}

fn decisions(criterion: &mut Criterion) {
    let shape = tpcc();
    let known = DarcParams {
        start: DarcStart::Known,
        ..DarcParams::default()
    };
    decision(
        criterion,
        "decision/c-fcfs",
        systems::c_fcfs(&shape).ingress,
    );
    decision(
        criterion,
        "decision/fixed-priority",
        systems::fixed_priority(&shape).ingress,
    );
    decision(
        criterion,
        "decision/darc",
        systems::darc(&shape, known).ingress,
    );
    decision(
        criterion,
        "decision/darc-stable",
        systems::darc_stable(&shape, known).ingress,
    );
}

fn profile_update(criterion: &mut Criterion) {
    let mut profiler = Profiler::new(
        5,
        DarcRules {
            window: u64::MAX,
            ..DarcRules::default()
        },
    );
    let mut class = 0;
    criterion.bench_function("profile update", |bencher| {
        bencher.iter(|| {
            class = (class + 1) % 5;
            let class = ClassId(class);
            profiler.dispatched(class, black_box(3_000));
            black_box(profiler.finished(black_box(0), class, black_box(6_000)))
        });
    });
}

fn reservation_update(criterion: &mut Criterion) {
    let (mean_ns, share): (Vec<f64>, Vec<f64>) = TPCC
        .iter()
        .map(|&(mean_ns, share)| (mean_ns as f64, share))
        .unzip();
    let present = BitSet::range(0, WORKERS);
    let open = Plan::open(Order::Arrival, (0..6).map(ClassId).collect(), present);
    let rules = Rules {
        delta: 2.0,
        spillway: 1,
    };
    criterion.bench_function("reservation update", |bencher| {
        bencher.iter_batched_ref(
            || open.clone(),
            |plan| {
                reserve(
                    plan,
                    Profile {
                        mean_ns: &mean_ns,
                        share: &share,
                    },
                    rules,
                    &present,
                );
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, decisions, profile_update, reservation_update);
criterion_main!(benches);
