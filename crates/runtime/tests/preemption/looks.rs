//! How often a worker that runs a long request asks what waits at its receive queue, where only a system call tells.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headway_net::datapath::{Datapath, DatapathEnds, Rx, Scratch};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::replay::Replay;
use headway_runtime::{Builder, Call, Layout, checkpoint};

use super::common::{FOREVER, play, replay};
use super::{alone, builder, roam};

static LOOKS: AtomicU64 = AtomicU64::new(0);

/// A replay whose receive queues say that they are asked by system calls, and count the questions.
struct CountedLooks(Replay);

impl Datapath for CountedLooks {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        let ends = Box::new(self.0).split(rx_queues, tx)?;
        let rxs = ends.rxs.into_iter();
        let rxs = rxs
            .map(|rx| Arc::new(CountedRx(rx)) as Arc<dyn Rx>)
            .collect();
        Ok(DatapathEnds { rxs, ..ends })
    }
}

struct CountedRx(Arc<dyn Rx>);

impl Rx for CountedRx {
    fn poll_is_system_call(&self) -> bool {
        true
    }

    fn scratch(&self) -> Scratch {
        self.0.scratch()
    }

    fn poll(
        &self,
        now_ns: u64,
        scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        self.0.poll(now_ns, scratch, pool, free, out, max)
    }

    fn backlog_hint(&self) -> usize {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        self.0.backlog_hint()
    }

    fn wait(&self, timeout_ns: u64) {
        self.0.wait(timeout_ns);
    }

    fn wake(&self) {
        self.0.wake();
    }

    fn finished(&self) -> bool {
        self.0.finished()
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

/// The looks during one request of 50 ms, and how long it took.
fn looks_of_a_long(builder: Builder) -> (u64, Duration) {
    let (datapath, control) = replay(1, 2, 0, [0, 1]);
    let seen = Arc::new(Mutex::new((0, Duration::ZERO)));
    let inside = Arc::clone(&seen);
    let server = builder
        .service(move |call: &mut Call<'_>| {
            if call.service_hint_ns() == 1 {
                let (begun, before) = (Instant::now(), LOOKS.load(Ordering::Relaxed));
                while begun.elapsed() < Duration::from_millis(50) {
                    checkpoint();
                }
                let looks = LOOKS.load(Ordering::Relaxed) - before;
                *inside.lock().unwrap() = (looks, begun.elapsed());
            }
        })
        .datapath(CountedLooks(datapath))
        .start()
        .unwrap();
    play(&control);
    assert_eq!(server.shutdown(FOREVER).unwrap().answered, 2);
    let seen = *seen.lock().unwrap();
    assert!(seen.1 > Duration::ZERO, "the long ran");
    seen
}

/// A quantum of SYNERGY is two services of a short, here a microsecond or two; each ended with a system call.
#[test]
fn a_long_request_looks_for_arrivals_no_more_often_than_asked() {
    let _alone = alone();
    for policy in ["synergy", "tiny-quanta,q=2us"] {
        for layout in [Layout::Inline, Layout::Dedicated] {
            if policy != "synergy" && layout == Layout::Dedicated {
                continue; // Its workers end their slices themselves.
            }
            for (every_us, chosen) in [(25, false), (200, true)] {
                let builder = roam(builder(policy, 1, layout), true);
                let every = Duration::from_micros(every_us);
                let builder = if chosen {
                    builder.look_every(every)
                } else {
                    builder
                };
                let (looks, took) = looks_of_a_long(builder);
                let most = took.as_nanos() as u64 / every.as_nanos() as u64 + 2;
                assert!(
                    looks <= most,
                    "{policy}, {layout:?}: {looks} looks, not {most}"
                );
            }
        }
    }
}
