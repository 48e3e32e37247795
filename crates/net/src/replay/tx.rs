//! The send side of a replay: it records.

use std::io;
use std::sync::Arc;

use super::schedule::{Completion, ReplayState};
use crate::datapath::Tx;
use crate::pool::{SlotId, SlotPool};

/// A sending end that records each request's completion, and hands over the records when dropped.
#[derive(Debug)]
pub struct ReplayTx {
    shared: Arc<ReplayState>,
    completions: Vec<Completion>,
}

impl ReplayTx {
    /// Reserves capacity for all requests, so recording never allocates. It touches the memory of one and a half
    /// fair shares, so recording causes no page fault unless the load is very uneven.
    pub(super) fn new(shared: Arc<ReplayState>, fair_share: usize) -> ReplayTx {
        let total = shared.total();
        let mut completions = Vec::with_capacity(total);
        let touched = (fair_share + fair_share / 2).min(total);
        completions.resize(touched, UNTOUCHED);
        completions.clear();
        ReplayTx {
            shared,
            completions,
        }
    }

    #[inline]
    fn record(&mut self, pool: &SlotPool, id: &SlotId, now_ns: u64, shed: bool) {
        let slot = pool.get(id);
        self.completions.push(Completion {
            latency_ns: now_ns.saturating_sub(slot.arrived_ns),
            service_ns: slot.service_hint_ns,
            index: slot.index,
            class: slot.replay_class,
            shed,
        });
    }
}

/// Not zero: the allocator might hand out untouched zero pages.
const UNTOUCHED: Completion = Completion {
    latency_ns: u64::MAX,
    service_ns: u64::MAX,
    index: u32::MAX,
    class: u8::MAX,
    shed: true,
};

impl Tx for ReplayTx {
    fn send_is_system_call(&self) -> bool {
        false
    }

    fn send(&mut self, pool: &SlotPool, slot: &mut SlotId, now_ns: u64) -> io::Result<()> {
        self.record(pool, slot, now_ns, false);
        Ok(())
    }

    fn send_sheds(&mut self, pool: &SlotPool, slots: &mut [SlotId], now_ns: u64) -> usize {
        for slot in &*slots {
            self.record(pool, slot, now_ns, true);
        }
        slots.len()
    }
}

impl Drop for ReplayTx {
    fn drop(&mut self) {
        self.shared.completions().append(&mut self.completions);
    }
}
