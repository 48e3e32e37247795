//! The receive side of a replay.

use std::sync::Arc;

use headway_machine::Clock;

use super::schedule::{Queue, ReplayArrival, ReplayState};
use crate::datapath::{Rx, Scratch};
use crate::header::{Flag, Header};
use crate::pool::{FreeList, SlotId, SlotPool};
use crate::slot::{Peer, Slot};

/// The last part of a wait, which is spun: a sleep can end this late (timer slack, wake-up, an interrupt to a virtual core).
const SLEEP_ERROR_NS: u64 = 100_000;

/// A receive queue fed by a schedule.
#[derive(Debug)]
pub struct ReplayRx {
    shared: Arc<ReplayState>,
    queue: usize,
    clock: Clock,
}

impl ReplayRx {
    pub(super) fn new(shared: Arc<ReplayState>, queue: usize, clock: Clock) -> ReplayRx {
        ReplayRx {
            shared,
            queue,
            clock,
        }
    }

    fn queue(&self) -> &Queue {
        &self.shared.queues()[self.queue]
    }

    /// The next request's arrival time; never, before the start and after the end.
    fn next_ns(&self) -> u64 {
        let next = self.queue().remaining().first();
        self.shared
            .start_ns()
            .zip(next)
            .map_or(u64::MAX, |(start_ns, next)| {
                start_ns.saturating_add(next.at_ns)
            })
    }

    fn spin_until(&self, end_ns: u64) {
        while self.clock.now_ns() < end_ns && !self.queue().waker().take_pending() {
            std::hint::spin_loop();
        }
    }
}

impl Rx for ReplayRx {
    fn poll_is_system_call(&self) -> bool {
        false
    }

    fn scratch(&self) -> Scratch {
        Scratch::None
    }

    /// `arrived_ns` is the intended time, however late the poll.
    fn poll(
        &self,
        now_ns: u64,
        _scratch: &mut Scratch,
        pool: &SlotPool,
        free: &mut FreeList,
        out: &mut Vec<SlotId>,
        max: usize,
    ) -> usize {
        let Some(start_ns) = self.shared.start_ns() else {
            return 0;
        };
        let Some(elapsed_ns) = now_ns.checked_sub(start_ns) else {
            return 0;
        };
        let due = self.queue().claim(elapsed_ns, max.min(free.len()));
        for arrival in due {
            let mut id = free
                .take()
                .expect("no more were claimed than slots are free");
            fill(pool.get_mut(&mut id), arrival, start_ns);
            out.push(id);
        }
        due.len()
    }

    fn backlog_hint(&self) -> usize {
        let remaining = self.queue().remaining();
        if remaining.is_empty() {
            return 0;
        }
        let Some(start_ns) = self.shared.start_ns() else {
            return 0;
        };
        let Some(elapsed_ns) = self.clock.now_ns().checked_sub(start_ns) else {
            return 0;
        };
        let is_due = |arrival: &ReplayArrival| arrival.at_ns <= elapsed_ns;
        if !is_due(&remaining[0]) {
            return 0;
        }
        remaining.partition_point(is_due)
    }

    /// Sleeps, then spins the last 100 µs: a timer's error must not delay an arrival, since a packet's interrupt has no
    /// such error.
    fn wait(&self, timeout_ns: u64) {
        let now_ns = self.clock.now_ns();
        let end_ns = self.next_ns().min(now_ns.saturating_add(timeout_ns));
        let wait_ns = end_ns.saturating_sub(now_ns);
        if wait_ns > SLEEP_ERROR_NS {
            // After a wake or an early return the caller polls its queues and waits again.
            self.queue().waker().wait(None, wait_ns - SLEEP_ERROR_NS);
        } else {
            self.spin_until(end_ns);
        }
    }

    fn wake(&self) {
        self.queue().waker().wake();
    }

    fn finished(&self) -> bool {
        self.queue().remaining().is_empty()
    }

    /// No request is lost: the schedule waits for the next poll.
    fn dropped(&self) -> u64 {
        0
    }
}

/// The header's time field holds the time that a synthetic service spins, as in a load generator's requests.
fn fill(slot: &mut Slot, arrival: &ReplayArrival, start_ns: u64) {
    slot.arrived_ns = start_ns.saturating_add(arrival.at_ns);
    slot.service_hint_ns = arrival.service_ns;
    slot.index = arrival.index;
    slot.peer = Peer::NOBODY;
    slot.class = Slot::UNCLASSIFIED;
    slot.truncated = false;
    slot.replay_class = arrival.class;
    let time_ns = u32::try_from(arrival.service_ns).unwrap_or(u32::MAX);
    let header = Header {
        class: arrival.class,
        flag: Flag::REQUEST,
        index: arrival.index,
        time_ns,
    };
    let bytes = header.encode();
    slot.buffer_mut()[..bytes.len()].copy_from_slice(&bytes);
    slot.set_len(bytes.len());
}
