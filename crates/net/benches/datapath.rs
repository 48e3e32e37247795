//! The cost of the datapaths per request.

use std::net::UdpSocket;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use headway_machine::Clock;
use headway_net::datapath::{Datapath, DatapathEnds, Rx, Scratch};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::replay::{Replay, ReplayArrival};
use headway_net::udp::UdpDatapath;

const BATCH: usize = 64;

/// Polls one batch, which must be there, and gives the slots back.
fn poll_batch(
    rx: &dyn Rx,
    scratch: &mut Scratch,
    pool: &SlotPool,
    free: &mut FreeList,
    out: &mut Vec<SlotId>,
) {
    assert_eq!(
        rx.poll(Clock::global().now_ns(), scratch, pool, free, out, BATCH),
        BATCH
    );
    out.drain(..).for_each(|id| free.give(id));
}

fn udp(criterion: &mut Criterion) {
    let datapath = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = datapath.local_addr();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let DatapathEnds { rxs, mut txs } = Box::new(datapath).split(1, 1).unwrap();
    let (pool, mut free) = SlotPool::new(BATCH).unwrap();
    let (rx, mut scratch, mut out) = (&*rxs[0], rxs[0].scratch(), Vec::with_capacity(BATCH));
    let mut group = criterion.benchmark_group("udp");
    group.bench_function("poll/empty", |bencher| {
        bencher.iter(|| {
            rx.poll(
                Clock::global().now_ns(),
                &mut scratch,
                &pool,
                &mut free,
                &mut out,
                BATCH,
            )
        });
    });
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("poll/64", |bencher| {
        let poll = |()| poll_batch(rx, &mut scratch, &pool, &mut free, &mut out);
        bencher.iter_batched(
            || {
                for _ in 0..BATCH {
                    client.send_to(&[0; 64], server).unwrap();
                }
            },
            poll,
            BatchSize::PerIteration,
        );
    });
    client.send_to(&[0; 64], server).unwrap();
    while rx.poll(
        Clock::global().now_ns(),
        &mut scratch,
        &pool,
        &mut free,
        &mut out,
        1,
    ) == 0
    {}
    group.throughput(Throughput::Elements(1));
    group.bench_function("send", |bencher| {
        // The client does not read: its full queue drops, which costs the sender about the same.
        bencher.iter(|| txs[0].send(&pool, &mut out[0], 0));
    });
}

/// A started replay of requests that all arrive `at_ns` after the start.
fn started(requests: usize, at_ns: u64) -> Arc<dyn Rx> {
    let arrival = ReplayArrival {
        at_ns,
        service_ns: 1_000,
        index: 0,
        class: 0,
    };
    let (replay, control) = Replay::new(vec![vec![arrival; requests]]).unwrap();
    let DatapathEnds { mut rxs, .. } = Box::new(replay).split(1, 0).unwrap();
    control.start(Clock::global().now_ns());
    rxs.remove(0)
}

fn replay(criterion: &mut Criterion) {
    const ROUNDS: usize = 64;
    let (pool, mut free) = SlotPool::new(BATCH).unwrap();
    let mut out = Vec::with_capacity(BATCH);
    let mut group = criterion.benchmark_group("replay");
    let idle = started(1, u64::MAX / 2);
    group.bench_function("poll/empty", |bencher| {
        bencher.iter(|| {
            idle.poll(
                Clock::global().now_ns(),
                &mut Scratch::None,
                &pool,
                &mut free,
                &mut out,
                BATCH,
            )
        });
    });
    group.throughput(Throughput::Elements((ROUNDS * BATCH) as u64));
    group.bench_function("poll/64", |bencher| {
        bencher.iter_batched(
            || started(ROUNDS * BATCH, 0),
            |rx: Arc<dyn Rx>| {
                for _ in 0..ROUNDS {
                    poll_batch(&*rx, &mut Scratch::None, &pool, &mut free, &mut out);
                }
            },
            BatchSize::PerIteration,
        );
    });
}

criterion_group!(benches, udp, replay);
criterion_main!(benches);
