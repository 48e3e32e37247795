//! The sending half of a connection: unacknowledged data, the scoreboard of selective acknowledgements (RFC 6675), recovery from losses.
//!
//! Positions count from the SYN, which is 0; the first byte of data is 1, and the FIN follows the last. They do not wrap.

use crate::tcp::congestion::CongestionWindow;
use crate::tcp::ranges::RangeSet;
use crate::tcp::ring::ByteRing;
use crate::tcp::rtt::RttEstimator;
use crate::tcp::segment::SequenceNumber;

/// Duplicate acknowledgements, or segments beyond it that arrived, after which a segment counts as lost.
const DUPLICATES: u32 = 3;

/// A recovery from a loss.
#[derive(Debug, Clone, Copy)]
struct LossRecovery {
    /// It is over when all before this position is acknowledged.
    point: u64,
    /// All lost data before this position was sent again.
    resent: u64,
    /// It began with a timeout: all that is not selectively acknowledged is lost.
    is_timeout: bool,
}

#[derive(Debug)]
pub(crate) struct StreamSender {
    first: SequenceNumber,
    /// The first unacknowledged position, and the next to send.
    unacknowledged: u64,
    next: u64,
    /// The position of the ring's first byte.
    base: u64,
    ring: ByteRing,
    limit: usize,
    /// No data follows that of the ring.
    is_ended: bool,
    /// The peer's window, unscaled, and its largest.
    window: u64,
    most_window: u64,
    /// The position and the acknowledgement of the segment that the window is from.
    window_from: (i64, u64),
    pub(super) scale: u8,
    /// The most bytes of a segment.
    mss: usize,
    pub(super) has_sack: bool,
    sacked: RangeSet,
    duplicates: u32,
    recovery: Option<LossRecovery>,
    congestion: CongestionWindow,
    rtt: RttEstimator,
    /// The position and the time of a segment whose round trip is measured.
    timed: Option<(u64, u64)>,
    /// The timer of a shut window passed, so that the window is used however small it is.
    is_forced: bool,
}

/// A range of positions to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendRange {
    pub(super) first: u64,
    pub(super) bytes: usize,
    pub(super) has_fin: bool,
    pub(super) is_again: bool,
}

impl StreamSender {
    pub(super) fn new(first: SequenceNumber, limit: usize) -> Self {
        Self {
            first,
            unacknowledged: 0,
            next: 0,
            base: 1,
            ring: ByteRing::default(),
            limit,
            is_ended: false,
            window: 0,
            most_window: 0,
            window_from: (0, 0),
            scale: 0,
            mss: 536,
            has_sack: false,
            sacked: RangeSet::default(),
            duplicates: 0,
            recovery: None,
            congestion: CongestionWindow::new(536),
            rtt: RttEstimator::default(),
            timed: None,
            is_forced: false,
        }
    }

    /// The handshake agreed on this.
    pub(super) fn agree(&mut self, mss: usize, scale: u8, has_sack: bool) {
        self.mss = mss;
        self.scale = scale;
        self.has_sack = has_sack;
        self.congestion = CongestionWindow::new(mss);
    }

    #[inline]
    pub(super) fn sequence_of(&self, position: u64) -> SequenceNumber {
        self.first.wrapping_add(position as u32)
    }

    /// The position of an acknowledgement: the one nearest the first unacknowledged.
    #[inline]
    pub(super) fn position_of(&self, sequence: SequenceNumber) -> i64 {
        let distance = sequence.wrapping_sub(self.sequence_of(self.unacknowledged)) as i32;
        self.unacknowledged as i64 + i64::from(distance)
    }

    #[inline]
    pub(super) fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The position of a reset: the next, unless that is a FIN's end beyond the window, where no peer would expect it.
    pub(super) fn reset_position(&self) -> u64 {
        let edge = self.unacknowledged + self.window;
        self.next.min(edge.max(1))
    }

    pub(super) fn most_window(&self) -> u64 {
        self.most_window
    }

    pub(super) fn rtt(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        self.rtt.timeout_ns()
    }

    /// The position behind the data: the FIN's.
    fn data_end(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// Data and FIN that the peer has not acknowledged.
    pub(super) fn owes(&self) -> bool {
        self.unacknowledged < self.data_end() + u64::from(self.is_ended)
    }

    pub(super) fn has_outstanding(&self) -> bool {
        self.unacknowledged < self.next
    }

    /// Whether the peer acknowledged the FIN.
    pub(super) fn is_end_acknowledged(&self) -> bool {
        self.is_ended && self.unacknowledged > self.data_end()
    }

    /// Whether something waits for the peer's window, and nothing is under way whose acknowledgement would open it.
    pub(super) fn is_shut(&self) -> bool {
        !self.has_outstanding() && self.next < self.data_end()
    }

    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.ring.len())
    }

    pub(super) fn push(&mut self, from: &[u8]) -> usize {
        let bytes = from.len().min(self.room());
        self.ring.push(&from[..bytes]);
        bytes
    }

    pub(super) fn end(&mut self) {
        self.is_ended = true;
    }

    pub(super) fn payload(&self, range: SendRange) -> (&[u8], &[u8]) {
        self.ring
            .slices((range.first - self.base) as usize, range.bytes)
    }

    /// The SYN left.
    pub(super) fn sent_syn(&mut self, now_ns: u64) {
        if self.next == 0 {
            self.next = 1;
            self.timed = Some((1, now_ns));
        } else {
            self.timed = None;
        }
    }

    /// The handshake ended here with the peer's acknowledgement, before there was a connection.
    pub(super) fn established(&mut self) {
        (self.unacknowledged, self.next) = (1, 1);
    }

    /// Takes the window of a segment, unless an earlier one overtook it. Returns whether the window grew.
    pub(super) fn take_window(&mut self, position: i64, acknowledgement: u64, window: u64) -> bool {
        let from = (position, acknowledgement);
        if from < self.window_from {
            return false;
        }
        self.window_from = from;
        let has_grown = window > self.window;
        self.window = window;
        self.most_window = self.most_window.max(window);
        has_grown
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// All before a position was acknowledged.
    pub(super) fn acknowledge(&mut self, position: u64, now_ns: u64) {
        let in_flight = self.next - self.unacknowledged;
        let bytes = position - self.unacknowledged;
        self.unacknowledged = position;
        let consumed = position.min(self.data_end()).saturating_sub(self.base);
        self.ring.consume(consumed as usize);
        self.ring.rewind();
        self.base += consumed;
        self.sacked.remove_below(position);
        self.duplicates = 0;
        if let Some((timed, sent_ns)) = self.timed
            && position >= timed
        {
            self.rtt.measured(now_ns.saturating_sub(sent_ns));
            self.timed = None;
        }
        self.rtt.progressed();
        match &mut self.recovery {
            Some(recovery) if position >= recovery.point => self.recovery = None,
            Some(recovery) => {
                recovery.resent = recovery.resent.max(position);
                if recovery.is_timeout {
                    self.congestion.acknowledged(bytes, u64::MAX / 2);
                }
            }
            None => self.congestion.acknowledged(bytes, in_flight),
        }
    }

    /// Takes the blocks of a selective acknowledgement; returns whether they say anything new.
    pub(super) fn take_sack(&mut self, blocks: &[(SequenceNumber, SequenceNumber)]) -> bool {
        if !self.has_sack {
            return false;
        }
        let all = (self.unacknowledged, self.next);
        let before = self.sacked.bytes_within(all.0, all.1);
        for (first, end) in blocks {
            let (first, end) = (self.position_of(*first), self.position_of(*end));
            if first > all.0 as i64 && first < end && end <= all.1 as i64 {
                self.sacked.insert(first as u64, end as u64);
            }
        }
        self.sacked.bytes_within(all.0, all.1) > before
    }

    /// An acknowledgement said that a segment arrived, but not the next one. Returns whether a recovery begins.
    pub(super) fn duplicate(&mut self) -> bool {
        self.duplicates += 1;
        let is_lost = self.duplicates >= DUPLICATES || self.is_lost(self.unacknowledged);
        if self.recovery.is_some() || !is_lost {
            return false;
        }
        self.recovery = Some(LossRecovery {
            point: self.next,
            resent: self.unacknowledged,
            is_timeout: false,
        });
        self.congestion.lost(self.next - self.unacknowledged);
        self.timed = None;
        true
    }

    /// Whether so much arrived beyond a position that it must be lost (RFC 6675, IsLost).
    fn is_lost(&self, position: u64) -> bool {
        let ranges = self.sacked.as_slice();
        let above = ranges.len() - ranges.partition_point(|range| range.1 <= position);
        let bytes = self.sacked.bytes_within(position, self.next);
        above >= DUPLICATES as usize || bytes > (u64::from(DUPLICATES) - 1) * self.mss as u64
    }

    /// The timeout passed without an acknowledgement.
    pub(super) fn timed_out(&mut self) {
        let in_flight = self.next - self.unacknowledged;
        let is_first = self.rtt.expirations() == 0;
        self.congestion.timed_out(in_flight, is_first);
        if !is_first {
            // The peer may have dropped what it had acknowledged selectively (RFC 2018, 8).
            self.sacked.clear();
        }
        self.rtt.expired();
        self.duplicates = 0;
        self.timed = None;
        self.recovery = Some(LossRecovery {
            point: self.next,
            resent: self.unacknowledged,
            is_timeout: true,
        });
    }

    /// Bytes under way: neither acknowledged in any way nor lost (RFC 6675, SetPipe).
    fn in_flight(&self) -> u64 {
        let all = self.next - self.unacknowledged;
        if self.sacked.is_empty() {
            let arrived = u64::from(self.duplicates) * self.mss as u64;
            return match self.recovery {
                None => all.saturating_sub(arrived),
                Some(recovery) if recovery.is_timeout => {
                    (recovery.resent - self.unacknowledged) + (self.next - recovery.point)
                }
                Some(_) => all.saturating_sub(arrived),
            };
        }
        self.in_flight_between_sacked()
    }

    fn in_flight_between_sacked(&self) -> u64 {
        let (point, resent) = self.recovery.map_or((0, 0), |recovery| {
            let point = if recovery.is_timeout {
                recovery.point
            } else {
                0
            };
            (point, recovery.resent)
        });
        let (mut flight, mut above, mut ranges_above) = (0, 0, 0);
        let mut end = self.next;
        let before_first = std::iter::once((self.unacknowledged, self.unacknowledged));
        let ranges = before_first.chain(self.sacked.as_slice().iter().copied());
        for (first, gap) in ranges.rev() {
            // The gap between this range and the one above.
            let is_lost = ranges_above >= DUPLICATES || above > 2 * self.mss as u64;
            if !is_lost {
                flight += end.saturating_sub(gap.max(point));
            }
            flight += end.min(resent).saturating_sub(gap);
            above += gap - first;
            ranges_above += 1;
            end = first;
        }
        flight
    }

    /// The next range to send, if there is one and windows permit it.
    pub(super) fn next_range(&self) -> Option<SendRange> {
        let in_flight = self.in_flight();
        self.lost_range(in_flight)
            .or_else(|| self.new_range(in_flight))
    }

    fn lost_range(&self, in_flight: u64) -> Option<SendRange> {
        let recovery = self.recovery?;
        let from = recovery.resent.max(self.unacknowledged);
        let is_first = from == self.unacknowledged;
        let end = if recovery.is_timeout {
            recovery.point
        } else if self.sacked.is_empty() {
            // Without selective acknowledgements only the first segment is known to be lost (RFC 6582).
            if !is_first {
                return None;
            }
            recovery.point.min(from + self.mss as u64)
        } else {
            self.sacked.end()?
        };
        if !is_first && in_flight >= self.congestion.window() {
            return None;
        }
        let (first, gap_end) = self.sacked.gap_from(from, end)?;
        // The others may only be late.
        let is_lost = is_first || recovery.is_timeout || self.is_lost(first);
        is_lost.then(|| self.range(first, gap_end.min(self.next), true))
    }

    /// Uses the window from now on, however small it is.
    pub(super) fn force(&mut self) {
        self.is_forced = true;
    }

    fn new_range(&self, in_flight: u64) -> Option<SendRange> {
        let all_end = self.data_end() + u64::from(self.is_ended);
        if self.next == 0 || self.next >= all_end || in_flight >= self.congestion.window() {
            return None;
        }
        let window_end = self.unacknowledged + self.window;
        // A FIN needs no room: no peer keeps it in its buffer.
        let end = all_end.min(window_end.max(self.next));
        let end = if end == self.data_end() { all_end } else { end };
        if end <= self.next {
            return None;
        }
        let range = self.range(self.next, end, false);
        let is_last = range.first + range.bytes as u64 == self.data_end();
        let is_worth_it = range.bytes as u64 >= self.most_window / 2;
        // Against silly windows (RFC 9293, 3.8.6.2.1). The acknowledgement of what is under way, or the timer of a shut window, goes on.
        let is_silly = range.bytes < self.mss && !is_last && !is_worth_it && !self.is_forced;
        (!is_silly).then_some(range)
    }

    fn range(&self, first: u64, end: u64, is_again: bool) -> SendRange {
        let data_end = self.data_end();
        let bytes = end.min(data_end).saturating_sub(first) as usize;
        let bytes = bytes.min(self.mss);
        let has_fin = self.is_ended && first + bytes as u64 == data_end && end > data_end;
        SendRange {
            first,
            bytes,
            has_fin,
            is_again,
        }
    }

    /// A range left.
    pub(super) fn sent(&mut self, range: SendRange, now_ns: u64) {
        let end = range.first + range.bytes as u64 + u64::from(range.has_fin);
        if range.is_again {
            if let Some(recovery) = &mut self.recovery {
                recovery.resent = recovery.resent.max(end);
            }
            return;
        }
        self.is_forced = false;
        self.next = self.next.max(end);
        if self.timed.is_none() && self.recovery.is_none() {
            self.timed = Some((end, now_ns));
        }
    }

    /// Whether data that ends here is the last that was written.
    pub(super) fn is_last(&self, range: SendRange) -> bool {
        range.first + range.bytes as u64 == self.data_end()
    }
}
