//! Saying no: requests that will not run are answered in batches, since they come in bursts.

use headway_net::datapath::Tx;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::slot::Slot;

/// Refusals written but not yet sent.
pub(crate) struct Refusals {
    slots: Vec<SlotId>,
}

impl Refusals {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
        }
    }

    /// Turns the request into its refusal.
    pub(crate) fn refuse(&mut self, pool: &SlotPool, mut slot: SlotId, status: Status) {
        write_header(pool.get_mut(&mut slot), status, 0, 0);
        self.slots.push(slot);
    }

    /// Turns the request into one that is handed back to a rack's switch.
    pub(crate) fn hand_back(&mut self, pool: &SlotPool, mut slot: SlotId) {
        let flag = &mut pool.get_mut(&mut slot).buffer_mut()[1];
        *flag = Flag::from_bits(*flag).with_bounced(true).bits();
        self.slots.push(slot);
    }

    /// Whether another one would have to be given more memory.
    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() == self.slots.capacity()
    }

    /// How many more fit without more memory.
    pub(crate) fn room(&self) -> usize {
        self.slots.capacity() - self.slots.len()
    }

    /// Sends what has been refused and frees the slots; returns how many the system did not take.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        tx: &mut dyn Tx,
        pool: &SlotPool,
        free: &mut FreeList,
        now_ns: u64,
    ) -> u64 {
        if self.slots.is_empty() {
            return 0;
        }
        let sent = tx.send_sheds(pool, &mut self.slots, now_ns);
        let unsent = self.slots.len() - sent;
        self.slots.drain(..).for_each(|slot| free.give(slot));
        unsent as u64
    }
}

/// Makes the request's header the response's, for a payload of `payload_bytes`. The request is at least a header long.
#[inline]
pub(crate) fn write_header(
    slot: &mut Slot,
    status: Status,
    execution_ns: u64,
    payload_bytes: usize,
) {
    let bytes = slot
        .buffer_mut()
        .first_chunk_mut::<HEADER_BYTES>()
        .expect("a buffer is longer than a header");
    *bytes = Header::decode(*bytes)
        .response(status, execution_ns)
        .encode();
    slot.set_len(HEADER_BYTES + payload_bytes);
}
