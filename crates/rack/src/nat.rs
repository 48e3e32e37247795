//! The switch's address translation: it maps each index on the server side to a client's request.

use crate::LocalAddress;
use headway_net::header::Header;
use headway_net::slot::Peer;
use headway_policy::ClassId;
use headway_policy::rack::{Mark, ServerId};

/// A request that servers have, or that waits in the switch. It fills one cache line, the only one that a step touches.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct NatEntry {
    /// The slot in the low bits, and above it how many times the slot was taken.
    index: u32,
    /// Whether the slot is taken.
    in_use: bool,
    /// The client's address.
    pub(crate) client: Peer,
    /// The port's address that the client asked, from which it expects the answer.
    pub(crate) asked: LocalAddress,
    /// The client's index.
    pub(crate) client_index: u32,
    /// The time field as the client sent it.
    pub(crate) time_ns: u32,
    /// When the client's request arrived.
    pub(crate) arrived_ns: u64,
    /// The buffer of its body while the policy holds it.
    pub(crate) held: Option<u32>,
    /// The type byte as the client sent it.
    pub(crate) wire_class: u8,
    /// How many times servers handed the request back.
    pub(crate) bounces: u8,
    /// Bit 0: the plain or original copy is at `servers[0]`. Bit 1: the clone is at `servers[1]`.
    awaited: u8,
    /// The same bits, set when the policy no longer expects the copy's response because its server is silent.
    written_off: u8,
    /// Whether there are two copies.
    pub(crate) cloned: bool,
    /// Whether a response went on to the client.
    pub(crate) answered: bool,
    /// The request's type.
    pub(crate) class: ClassId,
    servers: [ServerId; 2],
}

/// Selects one of a request's copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NatCopy {
    First,
    Second,
}

impl NatCopy {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Second];

    pub(crate) fn of(mark: Mark) -> Self {
        if mark == Mark::Clone {
            Self::Second
        } else {
            Self::First
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl NatEntry {
    /// An entry of a free slot.
    fn nothing() -> Self {
        Self {
            index: 0,
            in_use: false,
            client: Peer::NOBODY,
            asked: LocalAddress::ANY,
            client_index: 0,
            time_ns: 0,
            arrived_ns: 0,
            held: None,
            wire_class: 0,
            bounces: 0,
            awaited: 0,
            written_off: 0,
            cloned: false,
            answered: false,
            class: ClassId(0),
            servers: [ServerId(0); 2],
        }
    }

    /// Fills the entry with a client's request that no server has yet. Assigning each field avoids building an entry elsewhere and copying it.
    #[inline]
    fn begin(
        &mut self,
        arrived_ns: u64,
        client: &Peer,
        asked: LocalAddress,
        header: Header,
        class: ClassId,
    ) {
        self.client = *client;
        self.asked = asked;
        self.client_index = header.index;
        self.time_ns = header.time_ns;
        self.arrived_ns = arrived_ns;
        self.held = None;
        self.wire_class = header.class;
        self.bounces = 0;
        self.awaited = 0;
        self.written_off = 0;
        self.cloned = false;
        self.answered = false;
        self.class = class;
    }

    /// The server that has this copy.
    pub(crate) fn server(&self, copy: NatCopy) -> Option<ServerId> {
        (self.awaited & copy.bit() != 0).then_some(self.servers[copy as usize])
    }

    /// Records that a copy was sent to a server.
    pub(crate) fn sent(&mut self, copy: NatCopy, server: ServerId) {
        self.awaited |= copy.bit();
        self.written_off &= !copy.bit();
        self.servers[copy as usize] = server;
    }

    /// Records that the policy no longer expects the copy's response.
    pub(crate) fn write_off(&mut self, copy: NatCopy) {
        self.written_off |= copy.bit();
    }

    /// Whether [`write_off`](Self::write_off) was called for the awaited copy.
    pub(crate) fn is_written_off(&self, copy: NatCopy) -> bool {
        self.written_off & copy.bit() != 0
    }

    /// Records that a copy came back.
    pub(crate) fn came_back(&mut self, copy: NatCopy) {
        self.awaited &= !copy.bit();
    }

    /// Whether a server has a copy or the switch holds the request.
    pub(crate) fn is_under_way(&self) -> bool {
        self.awaited != 0 || self.held.is_some()
    }
}

/// Where the count of a slot begins, in the bits above its number: a hash of seed and slot, the finaliser of SplitMix64.
fn first_count(seed: u64, slot: u32) -> u32 {
    let mut mixed = seed ^ (u64::from(slot) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 32) as u32
}

/// Entries by index. An index is a slot and a count of the times that the slot was taken. Late packets of an earlier request are
/// therefore recognised until the slot was taken 2^(32 − bits) more times. The count begins anywhere, so those of an earlier switch are too, and
/// nobody who sees no index can name one.
pub(crate) struct NatTable {
    slots: Box<[NatEntry]>,
    free: Vec<u32>,
    bits: u32,
}

const _: () = assert!(size_of::<NatEntry>() == 64, "one cache line");

impl NatTable {
    /// `2^bits` entries, whose counts begin as the seed says.
    pub(crate) fn new(bits: u32, seed: u64) -> Self {
        let slot = |slot| NatEntry {
            index: slot | (first_count(seed, slot) & !((1 << bits) - 1)),
            ..NatEntry::nothing()
        };
        Self {
            slots: (0..1 << bits).map(slot).collect(),
            free: (0..1 << bits).rev().collect(),
            bits,
        }
    }

    /// Enters a request and returns its index and entry; `None` when the table is full.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        arrived_ns: u64,
        client: &Peer,
        asked: LocalAddress,
        header: Header,
        class: ClassId,
    ) -> Option<(u32, &mut NatEntry)> {
        let number = self.free.pop()?;
        let entry = &mut self.slots[number as usize];
        entry.index = entry.index.wrapping_add(1 << self.bits);
        entry.in_use = true;
        entry.begin(arrived_ns, client, asked, header, class);
        Some((entry.index, entry))
    }

    /// The request with this index.
    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&mut NatEntry> {
        let mask = (1 << self.bits) - 1;
        let entry = &mut self.slots[(index & mask) as usize];
        (entry.in_use && entry.index == index).then_some(entry)
    }

    /// Frees the slot of a request that has ended.
    #[inline]
    pub(crate) fn end(&mut self, index: u32) {
        let number = index & ((1 << self.bits) - 1);
        self.slots[number as usize].in_use = false;
        self.free.push(number);
    }

    /// The index of the request in this slot, if it arrived before `before_ns`.
    pub(crate) fn older_than(&self, slot: usize, before_ns: u64) -> Option<u32> {
        let entry = &self.slots[slot];
        (entry.in_use && entry.arrived_ns < before_ns).then_some(entry.index)
    }

    /// The number of entries, used and free.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_net::header::HEADER_BYTES;
    use std::collections::HashSet;

    fn begin(table: &mut NatTable, index: u32) -> Option<u32> {
        let header = Header {
            index,
            ..Header::decode([0; HEADER_BYTES])
        };
        let begun = table.begin(0, &Peer::NOBODY, LocalAddress::ANY, header, ClassId(0));
        begun.map(|(index, _)| index)
    }

    #[test]
    fn indices_are_unique_among_those_under_way_and_late_ones_are_known() {
        let mut table = NatTable::new(2, 7);
        let mut last = HashSet::new();
        for round in 0..1000 {
            let now: HashSet<u32> = (0..4).map(|n| begin(&mut table, n).unwrap()).collect();
            assert_eq!((now.len(), table.under_way()), (4, 4), "round {round}");
            assert!(begin(&mut table, 9).is_none(), "it is full");
            assert!(last.iter().all(|&late| table.get(late).is_none()));
            now.iter().for_each(|&index| table.end(index));
            last = now;
        }
        assert!(last.iter().all(|&ended| table.get(ended).is_none()));
    }

    #[test]
    fn indices_of_an_earlier_switch_are_known_and_no_slot_tells_of_another() {
        let first = |seed: u64| {
            let mut table = NatTable::new(16, seed);
            let indices: Vec<u32> = (0..1 << 16)
                .map(|n| begin(&mut table, n).unwrap())
                .collect();
            (table, indices)
        };
        let (mut table, now) = first(1);
        let (_, before) = first(2);
        let known = before.iter().filter(|&&index| table.get(index).is_some());
        // One in 65 536 by chance.
        assert!(known.count() < 10);
        let counts: HashSet<u32> = now.iter().map(|index| index >> 16).collect();
        assert!(counts.len() > 30_000, "{}", counts.len());
    }

    #[test]
    fn copies_come_back_each_on_its_own() {
        let mut entry = NatEntry::nothing();
        assert!(!entry.is_under_way());
        entry.sent(NatCopy::First, ServerId(3));
        entry.sent(NatCopy::Second, ServerId(5));
        assert_eq!(entry.server(NatCopy::of(Mark::Clone)), Some(ServerId(5)));
        entry.came_back(NatCopy::First);
        assert_eq!(entry.server(NatCopy::of(Mark::Original)), None);
        assert!(entry.is_under_way());
        entry.came_back(NatCopy::Second);
        assert!(!entry.is_under_way());
    }
}
