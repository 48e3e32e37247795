//! Connections in TIME-WAIT, as few bytes as they need.

use std::collections::{HashMap, VecDeque};

use super::flow::{FlowKey, FlowSecrets};
use super::segment::{SegmentHeader, SequenceNumber, TcpFlags};
use super::time::{MILLISECOND_NS, SECOND_NS};

/// Twice the time that a segment lives in the network: RFC 9293's two minutes are those of 1981. Whoever wants the flow again does not wait for it.
const TIME_WAIT_NS: u64 = 10 * SECOND_NS;
/// The most of a table. Beyond them the oldest goes.
const MOST: usize = 1 << 14;

/// A connection in TIME-WAIT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeWaitEntry {
    /// Our next sequence number, and the next expected.
    pub(crate) next: SequenceNumber,
    pub(crate) expected: SequenceNumber,
    /// The peer's latest timestamp.
    pub(crate) timestamp: Option<u32>,
    since_ns: u64,
}

impl TimeWaitEntry {
    pub(crate) fn new(
        (next, expected, timestamp): (SequenceNumber, SequenceNumber, Option<u32>),
        now_ns: u64,
    ) -> Self {
        Self {
            next,
            expected,
            timestamp,
            since_ns: now_ns,
        }
    }

    /// Whether a SYN begins a new connection: its number or its timestamp is above all of the old one (RFC 9293, 3.10.7.4; RFC 6191).
    pub(crate) fn admits(&self, header: &SegmentHeader) -> bool {
        let is_later = header.sequence.wrapping_sub(self.expected) as i32 >= 0;
        match (self.timestamp, header.timestamps) {
            (Some(old), Some(new)) => {
                let growth = new.value.wrapping_sub(old) as i32;
                growth > 0 || growth == 0 && is_later
            }
            _ => is_later,
        }
    }

    /// Whether an own new connection may take the flow: the peer tells it from the old one by its timestamps.
    pub(crate) fn may_be_taken(&self, now_ns: u64) -> bool {
        // Not the clock of timestamps, which wraps.
        let milliseconds = |at_ns: u64| at_ns / MILLISECOND_NS;
        self.timestamp.is_some() && milliseconds(now_ns) > milliseconds(self.since_ns) + 1
    }

    /// A first sequence number above all of the old connection.
    pub(crate) fn first_sequence(&self, proposed: SequenceNumber) -> SequenceNumber {
        let least = self.next.wrapping_add(65_537);
        let is_above = proposed.wrapping_sub(least) as i32 >= 0;
        if is_above { proposed } else { least }
    }

    /// Whether a segment is answered: one that has data, or the FIN again.
    pub(crate) fn is_answered(header: &SegmentHeader, payload: &[u8]) -> bool {
        !payload.is_empty() || header.flags.has(TcpFlags::FIN) || header.flags.has(TcpFlags::SYN)
    }
}

#[derive(Debug)]
pub(crate) struct TimeWaitTable {
    entries: HashMap<FlowKey, TimeWaitEntry, FlowSecrets>,
    /// In the order in which they came, with the time.
    order: VecDeque<(u64, FlowKey)>,
}

impl TimeWaitTable {
    pub(crate) fn new(secrets: FlowSecrets) -> Self {
        Self {
            entries: HashMap::with_hasher(secrets),
            order: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn get(&self, key: &FlowKey, now_ns: u64) -> Option<&TimeWaitEntry> {
        if self.entries.is_empty() {
            return None;
        }
        let entry = self.entries.get(key)?;
        // Nobody is woken to forget it in time.
        (now_ns < entry.since_ns + TIME_WAIT_NS).then_some(entry)
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) -> Option<TimeWaitEntry> {
        self.entries.remove(key)
    }

    pub(crate) fn insert(&mut self, key: FlowKey, entry: TimeWaitEntry) {
        self.expire(entry.since_ns);
        if self.order.len() >= MOST
            && let Some((since_ns, oldest)) = self.order.pop_front()
        {
            self.remove_of(since_ns, &oldest);
        }
        self.order.push_back((entry.since_ns, key));
        self.entries.insert(key, entry);
    }

    /// Forgets those whose time is over.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        while let Some((since_ns, key)) = self.order.front().copied()
            && since_ns + TIME_WAIT_NS <= now_ns
        {
            self.order.pop_front();
            self.remove_of(since_ns, &key);
        }
    }

    /// Removes an entry, unless the flow has a later one.
    fn remove_of(&mut self, since_ns: u64, key: &FlowKey) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.since_ns == since_ns)
        {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^32 milliseconds are 49.7 days.
    #[test]
    fn a_flow_may_be_taken_after_the_clock_of_timestamps_wrapped() {
        let since_ns = u64::from(u32::MAX) * MILLISECOND_NS;
        let entry = TimeWaitEntry::new((1, 1, Some(1)), since_ns);
        assert!(!entry.may_be_taken(since_ns + MILLISECOND_NS));
        assert!(entry.may_be_taken(since_ns + 2 * MILLISECOND_NS));
    }
}
