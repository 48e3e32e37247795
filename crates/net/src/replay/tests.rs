//! Tests of the replay datapath.

use super::*;
use crate::datapath::{Rx, Scratch, Tx};
use crate::header::Header;
use crate::pool::{FreeList, SlotId, SlotPool};

/// So long that a wait which should have ended hangs the test instead of passing late.
const FOREVER_NS: u64 = 3_600_000_000_000;

/// `count` requests, `gap_ns` apart, numbered from `first`.
fn schedule(first: u32, count: u32, gap_ns: u64) -> Vec<ReplayArrival> {
    (0..count)
        .map(|i| ReplayArrival {
            at_ns: u64::from(i) * gap_ns,
            service_ns: 1_000 + u64::from(i),
            index: first + i,
            class: (i % 3) as u8,
        })
        .collect()
}

fn now_ns() -> u64 {
    Clock::global().now_ns()
}

struct ReplayBench {
    rxs: Vec<Arc<dyn Rx>>,
    txs: Vec<Box<dyn Tx>>,
    control: ReplayControl,
    pool: SlotPool,
    free: FreeList,
}

fn setup(schedules: Vec<Vec<ReplayArrival>>, tx: usize, slots: usize) -> ReplayBench {
    let queues = schedules.len();
    let (replay, control) = Replay::new(schedules).unwrap();
    let DatapathEnds { rxs, txs } = Box::new(replay).split(queues, tx).unwrap();
    let (pool, free) = SlotPool::new(slots).unwrap();
    ReplayBench {
        rxs,
        txs,
        control,
        pool,
        free,
    }
}

impl ReplayBench {
    fn poll(&mut self, max: usize) -> Vec<SlotId> {
        let mut out = Vec::new();
        self.rxs[0].poll(
            now_ns(),
            &mut Scratch::None,
            &self.pool,
            &mut self.free,
            &mut out,
            max,
        );
        out
    }
}

#[test]
fn nothing_arrives_before_the_start() {
    let mut setup = setup(vec![schedule(0, 3, 0)], 1, 4);
    assert!(setup.poll(9).is_empty());
    setup.control.start(now_ns() + FOREVER_NS);
    assert!(setup.poll(9).is_empty());
    assert_eq!((setup.rxs[0].backlog_hint(), setup.control.taken()), (0, 0));
    assert!(!setup.rxs[0].finished());
}

#[test]
fn due_requests_look_as_if_received() {
    let mut setup = setup(vec![schedule(40, 3, 1_000)], 1, 8);
    let start_ns = now_ns() - 1_000_000;
    setup.control.start(start_ns);
    assert_eq!(setup.rxs[0].backlog_hint(), 3);
    let ids = setup.poll(2);
    let slot = setup.pool.get(&ids[1]);
    assert_eq!(
        (slot.arrived_ns, slot.service_hint_ns, slot.index),
        (start_ns + 1_000, 1_001, 41)
    );
    let (header, rest) = Header::parse(slot.payload()).unwrap();
    assert_eq!((header.class, header.index, header.time_ns), (1, 41, 1_001));
    assert!(rest.is_empty() && !header.flag.is_response());
    assert_eq!((setup.rxs[0].backlog_hint(), setup.poll(9).len()), (1, 1));
    assert!(setup.rxs[0].finished());
}

#[test]
fn only_due_requests_are_handed_out() {
    let mut arrivals = schedule(0, 2, 0);
    arrivals.push(ReplayArrival {
        at_ns: FOREVER_NS,
        ..arrivals[0]
    });
    let mut setup = setup(vec![arrivals], 1, 8);
    setup.control.start(now_ns());
    assert_eq!((setup.poll(9).len(), setup.poll(9).len()), (2, 0));
}

#[test]
fn without_slots_requests_stay_in_the_schedule() {
    let mut setup = setup(vec![schedule(0, 5, 0)], 1, 3);
    setup.control.start(now_ns());
    assert_eq!((setup.poll(9).len(), setup.poll(9).len()), (3, 0));
    assert_eq!(setup.control.taken(), 3);
}

#[test]
fn completions_count_from_the_intended_time() {
    let mut setup = setup(vec![schedule(7, 2, 500)], 1, 4);
    let start_ns = now_ns() - 1_000_000;
    setup.control.start(start_ns);
    let mut ids = setup.poll(9);
    setup.pool.get_mut(&mut ids[0]).class = 99;
    let mut tx = setup.txs.remove(0);
    tx.send(&setup.pool, &mut ids[0], start_ns + 2_000).unwrap();
    assert_eq!(
        tx.send_sheds(&setup.pool, &mut ids[1..], start_ns + 3_000),
        1
    );
    assert!(setup.control.take_completions().is_empty());
    drop(tx);
    let served = Completion {
        latency_ns: 2_000,
        service_ns: 1_000,
        index: 7,
        class: 0,
        shed: false,
    };
    let shed = Completion {
        latency_ns: 2_500,
        service_ns: 1_001,
        index: 8,
        class: 1,
        shed: true,
    };
    assert_eq!(setup.control.take_completions(), [served, shed]);
    assert!(setup.control.take_completions().is_empty());
}

#[test]
fn each_request_is_handed_out_once_whoever_polls() {
    const EACH: u32 = 50_000;
    let schedules = vec![schedule(0, EACH, 50), schedule(EACH, EACH, 50)];
    let ReplayBench {
        rxs,
        txs,
        control,
        pool,
        mut free,
    } = setup(schedules, 4, 64);
    control.start(now_ns());
    std::thread::scope(|scope| {
        for (i, mut tx) in txs.into_iter().enumerate() {
            let (mut free, rxs, pool) = (free.split_off(16), &rxs, &pool);
            scope.spawn(move || {
                let mut out = Vec::with_capacity(16);
                while !rxs.iter().all(|rx| rx.finished()) {
                    for queue in [i % 2, (i + 1) % 2] {
                        rxs[queue].poll(
                            now_ns(),
                            &mut Scratch::None,
                            pool,
                            &mut free,
                            &mut out,
                            1 + i * 3,
                        );
                    }
                    for mut id in out.drain(..) {
                        tx.send(pool, &mut id, now_ns()).unwrap();
                        free.give(id);
                    }
                }
            });
        }
    });
    let mut indices: Vec<u32> = control
        .take_completions()
        .iter()
        .map(|done| done.index)
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..2 * EACH).collect::<Vec<_>>());
    assert_eq!(
        (control.taken(), control.total()),
        (2 * EACH as usize, 2 * EACH as usize)
    );
}

#[test]
fn a_wait_ends_by_an_arrival_the_start_or_a_wake() {
    let mut setup = setup(vec![schedule(0, 2, 300_000)], 1, 4);
    let rx = Arc::clone(&setup.rxs[0]);
    rx.wake();
    rx.wait(FOREVER_NS);
    let control = setup.control.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| rx.wait(FOREVER_NS));
        control.start(now_ns());
    });
    let mut received = 0;
    while received < 2 {
        received += setup.poll(1).len();
        if received < 2 {
            rx.wait(FOREVER_NS);
        }
    }
    rx.wait(1);
    assert!(rx.finished());
}

#[test]
fn a_schedule_out_of_order_is_refused() {
    let mut arrivals = schedule(0, 3, 10);
    arrivals.swap(1, 2);
    let error = Replay::new(vec![arrivals]).unwrap_err();
    assert!(error.to_string().contains("arrival 2"), "{error}");
}

#[test]
fn queues_must_match_schedules() {
    let (replay, _control) = Replay::new(vec![Vec::new(), Vec::new()]).unwrap();
    assert_eq!(
        Box::new(replay).split(1, 1).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}
