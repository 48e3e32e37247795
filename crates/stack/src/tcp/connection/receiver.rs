//! The receiving half of a connection: reassembly, and the announced window.
//!
//! Positions count from the peer's SYN, which is 0; the first byte of data is 1. They do not wrap.

use crate::tcp::ranges::RangeSet;
use crate::tcp::ring::ByteRing;
use crate::tcp::segment::{SackBlocks, SequenceNumber};

#[derive(Debug)]
pub(crate) struct StreamReceiver {
    /// The sequence number of the peer's SYN.
    first: SequenceNumber,
    /// The next expected position.
    next: u64,
    /// The announced end of the window. It never moves back (RFC 9293, 3.8.6).
    edge: u64,
    /// The position that was last acknowledged.
    pub(super) acknowledged: u64,
    ring: ByteRing,
    /// Data beyond `next`, which the ring has already.
    ahead: RangeSet,
    /// The position of the latest of it.
    latest: u64,
    /// The position of the peer's FIN.
    end: Option<u64>,
    limit: usize,
    pub(super) scale: u8,
    pub(super) mss: usize,
}

/// What became of a segment's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataFate {
    /// It was the next, and nothing had arrived ahead of it.
    Next,
    /// A segment before or behind it is missing, or was.
    Gap,
    /// It brought nothing new.
    Old,
}

impl StreamReceiver {
    pub(super) fn new(limit: usize, mss: usize) -> Self {
        let scale = window_shift(limit);
        Self {
            first: 0,
            next: 1,
            edge: 1 + limit.min(65_535) as u64,
            acknowledged: 0,
            ring: ByteRing::default(),
            ahead: RangeSet::default(),
            latest: 0,
            end: None,
            limit,
            scale,
            mss,
        }
    }

    /// The peer's SYN came, and is acknowledged by the answer.
    pub(super) fn begin(&mut self, first: SequenceNumber) {
        self.first = first;
        self.acknowledged = 1;
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    #[inline]
    pub(super) fn sequence_of(&self, position: u64) -> SequenceNumber {
        self.first.wrapping_add(position as u32)
    }

    /// The position of a sequence number: the one nearest the next expected.
    #[inline]
    pub(super) fn position_of(&self, sequence: SequenceNumber) -> i64 {
        let distance = sequence.wrapping_sub(self.sequence_of(self.next)) as i32;
        self.next as i64 + i64::from(distance)
    }

    /// Whether the peer ended, and all before is here.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    pub(super) fn readable(&self) -> usize {
        self.ring.len()
    }

    /// Whether segments are missing before data that arrived.
    pub(super) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }

    pub(super) fn read(&mut self, to: &mut [u8]) -> usize {
        let bytes = self.ring.read(to);
        if !self.has_gap() {
            self.ring.rewind();
        }
        bytes
    }

    /// Takes a segment's data, as much of it as the window has room for, and its FIN.
    pub(super) fn take(&mut self, position: i64, data: &[u8], has_fin: bool) -> DataFate {
        let old = usize::try_from(self.next as i64 - position).unwrap_or(0);
        let old = old.min(data.len());
        let first = (position + old as i64).max(0) as u64;
        let room = self.edge.saturating_sub(first);
        let fitting = usize::try_from(room)
            .unwrap_or(usize::MAX)
            .min(data.len() - old);
        let new = &data[old..old + fitting];
        let is_whole = fitting == data.len() - old;
        let end = first + fitting as u64;
        if has_fin && is_whole && self.end.is_none() && end >= self.next {
            self.end = Some(end);
        }
        let had_gap = self.has_gap();
        let before = self.next;
        if first <= self.next {
            self.append(new);
        } else if self.ahead.insert(first, end) {
            let offset = (first - self.next) as usize + self.ring.len();
            self.ring.write_at(offset, new);
            self.latest = first;
        }
        if self.end == Some(self.next) {
            self.next += 1;
        }
        match (first > before || had_gap, self.next > before) {
            (true, _) if fitting > 0 || has_fin => DataFate::Gap,
            (_, true) => DataFate::Next,
            _ => DataFate::Old,
        }
    }

    fn append(&mut self, new: &[u8]) {
        self.ring.write_at(self.ring.len(), new);
        let reached = self.next + new.len() as u64;
        let covering = self
            .ahead
            .as_slice()
            .iter()
            .rfind(|range| range.0 <= reached);
        let reached = covering.map_or(reached, |range| range.1.max(reached));
        self.ring.extend((reached - self.next) as usize);
        self.next = reached;
        self.ahead.remove_below(reached);
    }

    /// The blocks of a selective acknowledgement: the one of the latest segment, then its successors in turn (RFC 2018, 4).
    pub(super) fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let ranges = self.ahead.as_slice();
        let latest = ranges.partition_point(|range| range.1 <= self.latest);
        let (before, from) = ranges.split_at(latest.min(ranges.len()));
        for (first, end) in from.iter().chain(before).take(4) {
            blocks.push(self.sequence_of(*first), self.sequence_of(*end));
        }
        blocks
    }

    fn room_end(&self) -> u64 {
        self.next + self.limit.saturating_sub(self.ring.len()) as u64
    }

    /// The window of a SYN, which is never scaled.
    pub(super) fn syn_window(&self) -> u16 {
        self.limit.min(65_535) as u16
    }

    /// The window to announce now, scaled. It grows in steps of a segment, against silly windows (RFC 9293, 3.8.6.2.2).
    pub(super) fn announce(&mut self) -> u16 {
        let step = self.mss.min(self.limit / 2) as u64;
        let mut end = self.room_end();
        if end < self.edge + step {
            end = self.edge;
        }
        // A scaled window is rounded down, but never to before what was announced (RFC 7323, 2.4).
        let unit = 1 << self.scale;
        let mut window = (end - self.next.min(end)) / unit;
        if self.next + window * unit < self.edge {
            window += 1;
        }
        let window = window.min(65_535);
        self.edge = self.edge.max(self.next + window * unit);
        self.acknowledged = self.next;
        window as u16
    }

    /// Whether the application has read so much that the peer should hear of it.
    pub(super) fn is_update_due(&self) -> bool {
        let grown = self.room_end().saturating_sub(self.edge);
        let step = self.mss.min(self.limit / 2) as u64;
        let is_shut = self.edge.saturating_sub(self.next) < step;
        grown >= (self.limit as u64 / 4).max(step) || is_shut && grown >= step
    }
}

/// The shift by which windows up to `limit` fit 16 bits.
pub(crate) fn window_shift(limit: usize) -> u8 {
    let mut shift = 0;
    // One less, since a window is sometimes rounded up.
    while limit >> shift > 65_534 && shift < 14 {
        shift += 1;
    }
    shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Segments that overlap as they like, in any order, some beyond the window.
        #[test]
        fn the_stream_is_exact_whatever_the_order(
            segments in prop::collection::vec((0..6000i64, 0..1500usize), 1..120),
            limit in 1000..5000usize,
        ) {
            let stream: Vec<u8> = (0..8000u32).map(|at| (at * 7 % 251) as u8).collect();
            let mut receiver = StreamReceiver::new(limit, 1000);
            receiver.begin(u32::MAX - 100);
            let (mut read, mut edge) = (Vec::new(), 0);
            for (at, length) in segments {
                let data = &stream[at as usize..at as usize + length];
                receiver.take(1 + at, data, false);
                prop_assert!(receiver.readable() <= limit + 1);
                let mut buffer = [0; 700];
                let count = receiver.read(&mut buffer);
                read.extend(&buffer[..count]);
                let window = u64::from(receiver.announce()) << receiver.scale;
                prop_assert!(receiver.next() + window >= edge, "the edge moved back");
                edge = receiver.next() + window;
                prop_assert_eq!(edge, receiver.edge());
            }
            let mut rest = vec![0; receiver.readable()];
            receiver.read(&mut rest);
            read.extend(rest);
            prop_assert_eq!(read.len() as u64 + 1, receiver.next());
            prop_assert!(stream.starts_with(&read));
        }
    }
}
