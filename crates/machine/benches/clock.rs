//! The cost of reading the time: the calibrated TSC against the kernel's clock.

use criterion::{Criterion, criterion_group, criterion_main};
use headway_machine::{Clock, GapLog};

fn clock(criterion: &mut Criterion) {
    let (fast, kernel) = (Clock::global(), Clock::kernel());
    criterion.bench_function("clock/now_ns", |bencher| bencher.iter(|| fast.now_ns()));
    criterion.bench_function("clock/ticks", |bencher| bencher.iter(|| fast.ticks()));
    criterion.bench_function("clock/kernel", |bencher| bencher.iter(|| kernel.now_ns()));
    let mut gaps = GapLog::default();
    criterion.bench_function("gap_log/observe", |bencher| {
        bencher.iter(|| gaps.observe(fast.now_ns()));
    });
}

criterion_group!(benches, clock);
criterion_main!(benches);
