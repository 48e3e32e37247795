//! A worker that panics while others may interrupt it ends the server, and leaves no thread behind.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use headway_machine::Clock;
use headway_net::datapath::{Datapath, DatapathEnds, Tx};
use headway_net::pool::{SlotId, SlotPool};
use headway_net::replay::Replay;
use headway_runtime::{Idle, Layout, ShutdownError, Spin};

use super::common::{FOREVER, replay};
use super::{LONG_NS, TINY_QUANTA, alone, builder, in_both_layouts};

/// A datapath whose threads may panic outside of a handler: the first response does.
struct Breaking {
    replay: Replay,
    broken: Arc<AtomicBool>,
}

struct BreakingTx {
    tx: Box<dyn Tx>,
    broken: Arc<AtomicBool>,
}

impl Datapath for Breaking {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        let DatapathEnds { rxs, txs } = Box::new(self.replay).split(rx_queues, tx)?;
        let breaking = |tx| {
            let broken = Arc::clone(&self.broken);
            Box::new(BreakingTx { tx, broken }) as Box<dyn Tx>
        };
        let txs = txs.into_iter().map(breaking).collect();
        Ok(DatapathEnds { rxs, txs })
    }
}

impl Tx for BreakingTx {
    fn send_is_system_call(&self) -> bool {
        self.tx.send_is_system_call()
    }

    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, now_ns: u64) -> io::Result<()> {
        assert!(self.broken.swap(true, Ordering::Relaxed), "the test asked");
        self.tx.send(pool, slot, now_ns)
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], now_ns: u64) -> usize {
        self.tx.send_sheds(pool, slots, now_ns)
    }
}

/// How a server ends of which a worker panics while the dispatcher can interrupt it.
fn crash(policy: &str, layout: Layout, idle: Idle) -> ShutdownError {
    let (replay, control) = replay(1, 40, 1_000, [0, LONG_NS]);
    let datapath = Breaking {
        replay,
        broken: Arc::default(),
    };
    let server = builder(policy, 2, layout)
        .idle(idle)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    control.start(Clock::global().now_ns());
    server.wait();
    server.shutdown(FOREVER).map(drop).unwrap_err()
}

/// A worker waits at its end for the dispatcher to let go of its flag; the dispatcher ends because the worker says so first.
#[test]
fn a_worker_that_panics_while_others_may_interrupt_it_ends_the_server() {
    let _alone = alone();
    let policies = ["concord,dispatcher=dedicated", "shinjuku-sq", TINY_QUANTA];
    for (policy, layout) in in_both_layouts(policies) {
        for idle in [Idle::Spin, Idle::Park] {
            let (ended, end) = mpsc::channel();
            std::thread::spawn(move || ended.send(crash(policy, layout, idle)));
            let error = end.recv_timeout(FOREVER).expect("the server ends");
            let ShutdownError::Crashed { threads } = &error else {
                panic!("{policy} {layout:?} {idle:?}: {error}");
            };
            let only_worker = threads.len() == 1 && threads[0].starts_with("hw-worker-");
            assert!(only_worker, "{policy} {layout:?} {idle:?}: {error}");
        }
    }
}
