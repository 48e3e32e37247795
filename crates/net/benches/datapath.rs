//! What the datapaths cost per request.

use std::net::UdpSocket;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use headway_machine::Clock;
use headway_net::datapath::{Datapath, Rx, Tx};
use headway_net::pool::{FreeList, Pool, SlotId};
use headway_net::replay::{Replay, ReplayArrival};
use headway_net::udp::UdpDatapath;

const BATCH: usize = 64;

/// So short that the schedule outlasts the measurement.
const QUICK: std::time::Duration = std::time::Duration::from_millis(100);

/// Polls one batch, which must be there, and gives the slots back.
fn poll_batch<R: Rx>(
    rx: &R,
    scratch: &mut R::Scratch,
    pool: &Pool,
    free: &mut FreeList,
    out: &mut Vec<SlotId>,
) {
    assert_eq!(rx.poll(scratch, pool, free, out, BATCH), BATCH);
    out.drain(..).for_each(|id| free.give(id));
}

fn udp(criterion: &mut Criterion) {
    let datapath = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = datapath.local_addr();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (rxs, mut txs) = datapath.split(1, 1).unwrap();
    let (pool, mut free) = Pool::new(BATCH).unwrap();
    let (rx, mut scratch, mut out) = (&*rxs[0], rxs[0].scratch(), Vec::with_capacity(BATCH));
    let mut group = criterion.benchmark_group("udp");
    group.bench_function("poll/empty", |bencher| {
        bencher.iter(|| rx.poll(&mut scratch, &pool, &mut free, &mut out, BATCH));
    });
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("poll/64", |bencher| {
        let fill = || {
            for _ in 0..BATCH {
                client.send_to(&[0; 64], server).unwrap();
            }
        };
        let poll = |()| poll_batch(rx, &mut scratch, &pool, &mut free, &mut out);
        bencher.iter_batched(fill, poll, BatchSize::PerIteration);
    });
    client.send_to(&[0; 64], server).unwrap();
    while rx.poll(&mut scratch, &pool, &mut free, &mut out, 1) == 0 {}
    group.throughput(Throughput::Elements(1));
    group.bench_function("send", |bencher| {
        // The client does not read: its full queue drops, which costs the sender about the same.
        bencher.iter(|| txs[0].send(&pool, &mut out[0], 0));
    });
}

fn replay(criterion: &mut Criterion) {
    const ARRIVALS: u32 = 1 << 24;
    let arrivals = (0..ARRIVALS)
        .map(|index| ReplayArrival {
            at_ns: 0,
            service_ns: 1_000,
            index,
            class: 0,
        })
        .collect();
    let (replay, control) = Replay::new(vec![arrivals]).unwrap();
    let (rxs, _) = replay.split(1, 0).unwrap();
    let (pool, mut free) = Pool::new(BATCH).unwrap();
    let (rx, mut out) = (&*rxs[0], Vec::with_capacity(BATCH));
    let mut group = criterion.benchmark_group("replay");
    group.bench_function("poll/empty", |bencher| {
        bencher.iter(|| rx.poll(&mut (), &pool, &mut free, &mut out, BATCH));
    });
    control.start(Clock::global().now_ns());
    group
        .throughput(Throughput::Elements(BATCH as u64))
        .measurement_time(QUICK)
        .warm_up_time(QUICK);
    group.bench_function("poll/64", |bencher| {
        bencher.iter(|| poll_batch(rx, &mut (), &pool, &mut free, &mut out));
    });
}

criterion_group!(benches, udp, replay);
criterion_main!(benches);
