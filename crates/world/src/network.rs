//! The world's network: datagrams arrive at times drawn beforehand; what it loses, repeats, reorders or delays was drawn too.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headway_net::datapath::{Datapath, DatapathEnds, Rx, Scratch, Tx};
use headway_net::header::{Flag, Header, Status};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::slot::{Peer, Slot};
use headway_policy::Plan;
use headway_sync::world as door;

use crate::scheduler::{now_ns, spend, spend_on_packet};

/// The message of a panic that a scenario asked for.
pub(crate) const PANIC: &str = "the scenario asked for a panic";

/// A datagram on its way to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) at_ns: u64,
    pub(crate) class: u8,
    pub(crate) service_ns: u64,
    /// Whether a rack's switch sent it.
    pub(crate) by_switch: bool,
    /// As it comes.
    pub(crate) flag: Flag,
    /// Its place in the log of what became of it: repeated datagrams have places of their own.
    pub(crate) delivery: u32,
}

/// What became of a datagram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// When the server took it in, ns.
    pub(crate) taken_ns: Option<u64>,
    /// When its handler began, ns: more than once is a fault.
    pub(crate) begun_ns: Vec<u64>,
    /// When responses left, ns.
    pub(crate) answered_ns: Vec<u64>,
    /// When it was refused, ns.
    pub(crate) refused_ns: Vec<u64>,
    /// It was refused because the server stops.
    pub(crate) turned_away: bool,
    /// The network had no room for it.
    pub(crate) dropped: bool,
    /// When it was handed back to the rack's switch, ns.
    pub(crate) handed_back_ns: Vec<u64>,
    /// Where it began.
    pub(crate) first_run: Option<FirstRun>,
    /// What its handler, which ended, said of its long parts.
    pub(crate) said_long: Option<SaidLong>,
    /// It was interrupted where it must not be.
    pub(crate) interrupted_in_section: bool,
}

/// Where a request began, and by which plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstRun {
    /// As scheduled.
    pub(crate) class: u16,
    pub(crate) worker: u16,
    /// Of the plan published last, 0 without one.
    pub(crate) revision: u64,
}

/// What a handler said of its long parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SaidLong {
    /// 1 if it began one.
    pub(crate) begun: u64,
    /// Parts that it left open.
    pub(crate) unended: u64,
    /// Ends without a beginning.
    pub(crate) unbegun: u64,
}

/// What became of every datagram, and who ran when.
#[derive(Debug, Default)]
pub(crate) struct WorldLog {
    pub(crate) fates: Vec<Fate>,
    /// When handlers ran, in the order of their ends.
    pub(crate) runs: Vec<HandlerRun>,
    /// The plans that handlers saw in force, by revision.
    pub(crate) plans: Vec<(u64, Plan)>,
}

/// A part of a handler's run between two probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerRun {
    /// On which of the world's threads.
    pub(crate) thread: usize,
    pub(crate) delivery: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// Whether the request has said that it is long, and may be interrupted.
    pub(crate) is_heard: bool,
    /// How often the request had been suspended before.
    pub(crate) suspensions: u64,
}

/// The log, shared by all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLog(Arc<Mutex<WorldLog>>);

impl SharedLog {
    pub(crate) fn of(datagrams: usize) -> Self {
        let log = Self::default();
        log.lock().fates = vec![Fate::default(); datagrams];
        log
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WorldLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fate(&self, delivery: u32, change: impl FnOnce(&mut Fate)) {
        change(&mut self.lock().fates[delivery as usize]);
    }
}

/// What comes to the server, steered to its receive queues in turn.
pub(crate) struct WorldNetwork {
    /// In the order of their times.
    pub(crate) datagrams: Vec<Datagram>,
    /// Datagrams that a queue holds at most.
    pub(crate) room: usize,
    pub(crate) log: SharedLog,
    /// After so many packets, received or sent, the thread that has the next one panics.
    pub(crate) crash: Option<u64>,
}

impl Datapath for WorldNetwork {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        let crash = Crash(Arc::new(AtomicU64::new(self.crash.unwrap_or(u64::MAX))));
        let mut queues = vec![VecDeque::new(); rx_queues];
        for datagram in self.datagrams {
            queues[datagram.delivery as usize % rx_queues].push_back(datagram);
        }
        let rxs = queues.into_iter().map(|coming| {
            Arc::new(WorldRx {
                state: Mutex::new(IncomingQueue {
                    coming,
                    waiting: VecDeque::new(),
                    woken: false,
                    dropped: 0,
                }),
                room: self.room,
                log: self.log.clone(),
                crash: crash.clone(),
            }) as Arc<dyn Rx>
        });
        let txs = (0..tx).map(|_| {
            Box::new(WorldTx {
                log: self.log.clone(),
                crash: crash.clone(),
            }) as Box<dyn Tx>
        });
        Ok(DatapathEnds {
            rxs: rxs.collect(),
            txs: txs.collect(),
        })
    }
}

/// A panic of a thread of the server, outside of handlers.
#[derive(Clone)]
struct Crash(Arc<AtomicU64>);

impl Crash {
    /// The calling thread has a packet.
    fn meet(&self) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.wrapping_sub(1), Ordering::Relaxed);
        assert!(left != 0, "{PANIC}");
    }
}

struct WorldRx {
    state: Mutex<IncomingQueue>,
    room: usize,
    log: SharedLog,
    crash: Crash,
}

struct IncomingQueue {
    coming: VecDeque<Datagram>,
    waiting: VecDeque<Datagram>,
    woken: bool,
    dropped: u64,
}

impl WorldRx {
    fn state(&self) -> MutexGuard<'_, IncomingQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what has come by now to the queue, as far as there is room.
    fn arrive(&self, state: &mut IncomingQueue, now_ns: u64) {
        while let Some(next) = state.coming.front().filter(|next| next.at_ns <= now_ns) {
            if state.waiting.len() < self.room {
                state.waiting.push_back(*next);
            } else {
                self.log.fate(next.delivery, |fate| fate.dropped = true);
                state.dropped += 1;
            }
            state.coming.pop_front();
        }
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Rx for WorldRx {
    fn poll_is_system_call(&self) -> bool {
        false
    }

    fn scratch(&self) -> Scratch {
        Scratch::None
    }

    fn poll(
        &self,
        _now_ns: u64,
        _scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        let now_ns = spend_on_packet();
        let mut state = self.state();
        self.arrive(&mut state, now_ns);
        if !state.waiting.is_empty() {
            self.crash.meet();
        }
        let mut count = 0;
        while count < max && !state.waiting.is_empty() {
            let Some(mut id) = free.take() else { break };
            let datagram = state.waiting.pop_front().expect("it was looked at");
            fill(pool.get_mut(&mut id), &datagram, now_ns);
            self.log
                .fate(datagram.delivery, |fate| fate.taken_ns = Some(now_ns));
            out.push(id);
            count += 1;
        }
        count
    }

    fn backlog_hint(&self) -> usize {
        let now_ns = spend(10);
        let mut state = self.state();
        self.arrive(&mut state, now_ns);
        state.waiting.len()
    }

    fn wait(&self, timeout_ns: u64) {
        let now_ns = now_ns();
        let mut state = self.state();
        self.arrive(&mut state, now_ns);
        if std::mem::take(&mut state.woken) || !state.waiting.is_empty() {
            return;
        }
        let next_ns = state.coming.front().map(|next| next.at_ns - now_ns);
        let wait_ns = next_ns.map_or(timeout_ns, |next_ns| next_ns.min(timeout_ns));
        drop(state);
        let scheduler = door::current().expect("a thread of this world");
        scheduler.wait(self.place(), Some(wait_ns));
        self.state().woken = false;
    }

    fn wake(&self) {
        self.state().woken = true;
        let scheduler = door::current().expect("a thread of this world");
        scheduler.notify(self.place(), true);
    }

    fn finished(&self) -> bool {
        let state = self.state();
        state.coming.is_empty() && state.waiting.is_empty()
    }

    fn dropped(&self) -> u64 {
        self.state().dropped
    }
}

/// The switch of the server's rack.
pub(crate) fn switch_peer() -> Peer {
    Peer::at([1; 16], 7)
}

fn fill(slot: &mut Slot, datagram: &Datagram, now_ns: u64) {
    slot.arrived_ns = now_ns;
    slot.service_hint_ns = datagram.service_ns;
    slot.index = datagram.delivery;
    slot.peer = if datagram.by_switch {
        switch_peer()
    } else {
        Peer::NOBODY
    };
    slot.class = Slot::UNCLASSIFIED;
    slot.truncated = false;
    let header = Header {
        class: datagram.class,
        flag: datagram.flag,
        index: datagram.delivery,
        time_ns: u32::try_from(datagram.service_ns).unwrap_or(u32::MAX),
    };
    let bytes = header.encode();
    let body = datagram.delivery.to_be_bytes();
    let length = bytes.len() + body.len();
    slot.buffer_mut()[..length].copy_from_slice(&[&bytes[..], &body].concat());
    slot.set_len(length);
}

struct WorldTx {
    log: SharedLog,
    crash: Crash,
}

impl Tx for WorldTx {
    fn send_is_system_call(&self) -> bool {
        false
    }

    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, _now_ns: u64) -> io::Result<()> {
        self.crash.meet();
        let now_ns = spend_on_packet();
        let delivery = pool.get(slot).index;
        self.log
            .fate(delivery, |fate| fate.answered_ns.push(now_ns));
        Ok(())
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], _now_ns: u64) -> usize {
        for slot in &*slots {
            let now_ns = spend_on_packet();
            let buffer = pool.get(slot);
            let flag = Flag::from_bits(buffer.payload()[1]);
            self.log.fate(buffer.index, |fate| {
                if flag.is_response() {
                    fate.refused_ns.push(now_ns);
                    fate.turned_away = flag.status() == Status::Draining;
                } else {
                    fate.handed_back_ns.push(now_ns);
                }
            });
        }
        slots.len()
    }
}
