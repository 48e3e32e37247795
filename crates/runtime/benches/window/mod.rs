//! A datapath with a window: it gives out no more requests than a client would that keeps so many under way. A server refuses what it has no buffer for, so one that
//! finds all requests waiting at once would answer the first few.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headway_net::datapath::{Datapath, DatapathEnds, Rx, Scratch, Tx};
use headway_net::pool::{FreeList, SlotId, SlotPool};

/// Most requests under way.
pub(crate) const WINDOW: usize = 192;

/// A datapath of one receive queue, within the window.
pub(crate) struct Windowed<D>(pub(crate) D);

impl<D: Datapath> Datapath for Windowed<D> {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        assert_eq!(rx_queues, 1, "the window is that of one queue");
        let ends = Box::new(self.0).split(rx_queues, tx)?;
        let sent: Arc<[Sent]> = (0..tx).map(|_| Sent::default()).collect();
        let rxs = ends.rxs.into_iter().map(|queue| {
            let windowed = WindowedRx {
                queue,
                given: AtomicUsize::new(0),
                ended: AtomicUsize::new(0),
                sent: Arc::clone(&sent),
            };
            Arc::new(windowed) as Arc<dyn Rx>
        });
        let txs = ends.txs.into_iter().enumerate().map(|(own, end)| {
            let sent = Arc::clone(&sent);
            Box::new(WindowedTx { end, own, sent }) as Box<dyn Tx>
        });
        Ok(DatapathEnds {
            rxs: rxs.collect(),
            txs: txs.collect(),
        })
    }
}

/// What one thread has sent: its own line, which the window's queue reads once in a window.
#[derive(Default)]
#[repr(align(128))]
struct Sent(AtomicUsize);

struct WindowedRx {
    queue: Arc<dyn Rx>,
    given: AtomicUsize,
    /// How many were sent, when that was last asked.
    ended: AtomicUsize,
    sent: Arc<[Sent]>,
}

impl WindowedRx {
    /// How many more may be under way.
    fn room(&self) -> usize {
        let given = self.given.load(Ordering::Relaxed);
        let room = |ended: usize| WINDOW - (given - ended);
        match room(self.ended.load(Ordering::Relaxed)) {
            0 => {
                let sent = self.sent.iter().map(|sent| sent.0.load(Ordering::Relaxed));
                let ended = sent.sum();
                self.ended.store(ended, Ordering::Relaxed);
                room(ended)
            }
            room => room,
        }
    }
}

impl Rx for WindowedRx {
    fn poll_is_system_call(&self) -> bool {
        self.queue.poll_is_system_call()
    }

    fn scratch(&self) -> Scratch {
        self.queue.scratch()
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
        let max = max.min(self.room());
        if max == 0 {
            return 0;
        }
        let count = self.queue.poll(now_ns, scratch, pool, free, out, max);
        let given = self.given.load(Ordering::Relaxed) + count;
        self.given.store(given, Ordering::Relaxed);
        count
    }

    fn backlog_hint(&self) -> usize {
        self.queue.backlog_hint()
    }

    fn wait(&self, timeout_ns: u64) {
        self.queue.wait(timeout_ns);
    }

    fn wake(&self) {
        self.queue.wake();
    }

    fn finished(&self) -> bool {
        self.queue.finished()
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

struct WindowedTx {
    end: Box<dyn Tx>,
    own: usize,
    sent: Arc<[Sent]>,
}

impl Tx for WindowedTx {
    fn send_is_system_call(&self) -> bool {
        self.end.send_is_system_call()
    }

    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, now_ns: u64) -> io::Result<()> {
        self.end.send(pool, slot, now_ns)?;
        let sent = &self.sent[self.own].0;
        sent.store(sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], now_ns: u64) -> usize {
        self.end.send_sheds(pool, slots, now_ns)
    }
}
