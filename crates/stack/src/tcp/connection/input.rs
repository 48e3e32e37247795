//! The segments that a connection receives (RFC 9293, 3.10.7, with the checks of RFC 5961).

use super::receiver::DataFate;
use super::{ACK_DELAY_NS, AckDue, Agreed, TcpConnection, TcpFailure, TcpState};
use crate::tcp::segment::{SegmentHeader, TcpFlags};
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

/// The silence after which a peer's latest timestamp says nothing any more (RFC 7323, 5.5).
const TIMESTAMP_LIFE_NS: u64 = 24 * 24 * 60 * 60 * SECOND_NS;

impl TcpConnection {
    /// A segment came.
    pub(crate) fn on_segment(&mut self, header: &SegmentHeader, payload: &[u8], now_ns: u64) {
        match self.state {
            TcpState::Closed => {}
            TcpState::SynSent => self.on_answer(header, payload, now_ns),
            _ => self.on_synchronised(header, payload, now_ns),
        }
    }

    /// In SYN-SENT.
    fn on_answer(&mut self, header: &SegmentHeader, payload: &[u8], now_ns: u64) {
        let flags = header.flags;
        let has_ack = flags.has(TcpFlags::ACK);
        if has_ack && header.acknowledgement != self.sender.sequence_of(1) {
            // Of an earlier connection, which a reset ends at the peer. The SYN that is sent again gets its answer.
            if !flags.has(TcpFlags::RST) {
                self.stranger = Some(header.acknowledgement);
            }
            return;
        }
        if flags.has(TcpFlags::RST) {
            if has_ack {
                self.ended(Some(TcpFailure::Refused));
            }
            return;
        }
        if !flags.has(TcpFlags::SYN) {
            return;
        }
        self.receiver.begin(header.sequence);
        let agreed = Agreed::of_syn(header, Some(self.receiver.scale));
        self.agree(&agreed);
        self.heard_ns = now_ns;
        self.retransmit_at_ns = None;
        if !has_ack {
            // A simultaneous open: both sides' SYNs crossed.
            self.state = TcpState::SynReceived;
            self.is_syn_due = true;
            return;
        }
        self.sender.acknowledge(1, now_ns);
        self.sender.take_window(0, 1, u64::from(header.window));
        self.opened(now_ns);
        self.ack = AckDue::Now;
        if !payload.is_empty() || flags.has(TcpFlags::FIN) {
            self.take_data(1, header, payload, now_ns);
        }
    }

    fn opened(&mut self, now_ns: u64) {
        self.state = TcpState::Established;
        self.settings.user_timeout_ns = self.open_timeout_ns;
        self.progress_ns = now_ns;
        self.events.writable = true;
    }

    fn on_synchronised(&mut self, header: &SegmentHeader, payload: &[u8], now_ns: u64) {
        let position = self.receiver.position_of(header.sequence);
        let flags = header.flags;
        let length = payload.len() as i64 + i64::from(flags.has(TcpFlags::FIN));
        if self.is_too_old(header, now_ns) {
            // PAWS (RFC 7323, 5.3).
            self.answer_outside(length, now_ns);
            return;
        }
        if flags.has(TcpFlags::RST) {
            return self.on_reset(position, now_ns);
        }
        if flags.has(TcpFlags::SYN) {
            return self.on_syn_again(position, header, now_ns);
        }
        if !flags.has(TcpFlags::ACK) {
            return;
        }
        let (next, edge) = (self.receiver.next() as i64, self.receiver.edge() as i64);
        let is_inside = if length == 0 {
            position == next || (next < position && position < edge)
        } else {
            // A FIN alone needs no room.
            let is_next_fin = payload.is_empty() && position == next;
            (position < edge || is_next_fin) && position + length > next
        };
        if !is_inside {
            self.answer_outside(length, now_ns);
            // Its acknowledgement counts even when the window is shut (RFC 9293, 3.10.7.4), unless it is from another age.
            if (position - next).unsigned_abs() > self.settings.buffer_bytes.max(65_535) as u64 {
                return;
            }
        }
        if !self.take_acknowledgement(position, header, length, now_ns) {
            return;
        }
        // Only now: a stranger who does not know our numbers must not change the timestamp, after which the peer's segments would count as old.
        self.heard(now_ns);
        if is_inside {
            self.take_timestamp(position, header);
        }
        if is_inside && length > 0 {
            self.take_data(position, header, payload, now_ns);
        }
    }

    /// A SYN for a connection that exists.
    fn on_syn_again(&mut self, position: i64, header: &SegmentHeader, now_ns: u64) {
        if self.state == TcpState::SynReceived {
            if !header.flags.has(TcpFlags::ACK) {
                self.is_syn_due = true;
            } else if position == 0 && self.take_acknowledgement(0, header, 0, now_ns) {
                // Of a simultaneous open: both sides' SYNs with an acknowledgement cross, too.
                self.heard(now_ns);
                self.take_timestamp(0, header);
                self.ack = AckDue::Now;
                return;
            }
        }
        // Whoever really lost the connection answers this with a reset (RFC 5961, 4).
        self.answer_outside(0, now_ns);
    }

    fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.probes = 0;
    }

    /// Takes the timestamp of the segment that the last acknowledgement ended with, so that delays count (RFC 7323, 4.3).
    fn take_timestamp(&mut self, position: i64, header: &SegmentHeader) {
        if let (Some(own), Some(theirs)) = (&mut self.timestamps, header.timestamps)
            && position <= self.receiver.acknowledged as i64
        {
            own.recent = theirs.value;
        }
    }

    fn is_too_old(&self, header: &SegmentHeader, now_ns: u64) -> bool {
        match (self.timestamps, header.timestamps) {
            (Some(own), Some(theirs)) => {
                let age = own.recent.wrapping_sub(theirs.value) as i32;
                // Half of the timestamps' numbers are 24.8 days: after them a later one looks older.
                let is_known = now_ns.saturating_sub(self.heard_ns) < TIMESTAMP_LIFE_NS;
                let is_checked =
                    !header.flags.has(TcpFlags::RST) && self.state != TcpState::SynReceived;
                age > 0 && is_known && is_checked
            }
            _ => false,
        }
    }

    /// Answers a segment outside the window with an acknowledgement. Those without data at most once a millisecond: two sides that disagree would answer each
    /// other for ever.
    fn answer_outside(&mut self, length: i64, now_ns: u64) {
        let is_recent = |at: u64| now_ns < at + MILLISECOND_NS;
        if length == 0 && self.challenged_ns.is_some_and(is_recent) {
            return;
        }
        self.challenged_ns = Some(now_ns);
        self.ack = AckDue::Now;
    }

    fn on_reset(&mut self, position: i64, now_ns: u64) {
        let (next, edge) = (self.receiver.next() as i64, self.receiver.edge() as i64);
        if position == next {
            self.ended(Some(TcpFailure::Reset));
        } else if next < position && position <= edge {
            // The edge too: a peer whose window is full ends there, and the question harms nobody (RFC 5961, 3.2).
            self.answer_outside(0, now_ns);
        }
    }

    /// Takes the acknowledgement and the window of a segment; returns `false` if the rest of it does not count.
    fn take_acknowledgement(
        &mut self,
        position: i64,
        header: &SegmentHeader,
        length: i64,
        now_ns: u64,
    ) -> bool {
        let acknowledged = self.sender.position_of(header.acknowledgement);
        let (first, next) = (self.sender.unacknowledged(), self.sender.next());
        if acknowledged > next as i64 || acknowledged < first as i64 - self.oldest_acknowledged() {
            self.answer_outside(0, now_ns);
            return false;
        }
        if self.state == TcpState::SynReceived {
            if acknowledged < 1 {
                return false;
            }
            self.opened(now_ns);
        }
        // The window of a SYN is never scaled (RFC 7323, 2.2).
        let is_scaled = !header.flags.has(TcpFlags::SYN);
        let scale = if is_scaled { self.sender.scale } else { 0 };
        let window = u64::from(header.window) << scale;
        let has_same_window = window == self.sender.window();
        let has_sacked = self.sender.take_sack(header.sack.as_slice());
        if acknowledged < first as i64 {
            return true;
        }
        let acknowledged = acknowledged as u64;
        let has_grown = self.sender.take_window(position, acknowledged, window);
        if acknowledged > first {
            self.progressed(acknowledged, now_ns);
            if has_sacked && self.sender.duplicate() {
                self.restart_retransmission(now_ns);
            }
        } else if self.sender.has_outstanding() {
            // RFC 5681, 2; with selective acknowledgements what is new in them counts.
            let is_duplicate = if self.sender.has_sack {
                has_sacked
            } else {
                length == 0 && has_same_window
            };
            if is_duplicate && self.sender.duplicate() {
                self.restart_retransmission(now_ns);
            }
        } else if has_grown {
            // A shut window has opened.
            self.sender.rtt().progressed();
            self.retransmit_at_ns = None;
            self.progress_ns = now_ns;
        }
        true
    }

    /// How far back an acknowledgement may be (RFC 5961, 5).
    fn oldest_acknowledged(&self) -> i64 {
        self.sender.most_window().max(65_535) as i64
    }

    fn progressed(&mut self, acknowledged: u64, now_ns: u64) {
        self.sender.acknowledge(acknowledged, now_ns);
        self.progress_ns = now_ns;
        self.restart_retransmission(now_ns);
        self.events.writable = true;
        if !self.sender.is_end_acknowledged() {
            return;
        }
        match self.state {
            TcpState::FinWait1 => {
                self.state = TcpState::FinWait2;
                self.bound_last_wait(now_ns);
            }
            TcpState::Closing => self.state = TcpState::TimeWait,
            TcpState::LastAck => self.ended(None),
            _ => {}
        }
    }

    fn restart_retransmission(&mut self, now_ns: u64) {
        let at = now_ns + self.retransmission_wait_ns();
        let until = self
            .progress_ns
            .saturating_add(self.settings.user_timeout_ns);
        self.retransmit_at_ns = self.sender.has_outstanding().then_some(at.min(until));
    }

    fn take_data(&mut self, position: i64, header: &SegmentHeader, payload: &[u8], now_ns: u64) {
        if !matches!(
            self.state,
            TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2
        ) {
            // The peer had ended: a FIN that comes again.
            if self.state != TcpState::Closed {
                self.ack = AckDue::Now;
            }
            return;
        }
        let has_fin = header.flags.has(TcpFlags::FIN);
        let fate = self.receiver.take(position, payload, has_fin);
        if self.is_orphan() && self.receiver.readable() > 0 {
            // Nobody will read it.
            self.abort();
            return;
        }
        self.events.readable |= self.receiver.readable() > 0;
        let unacknowledged = self.receiver.next() - self.receiver.acknowledged;
        let is_second = unacknowledged > self.receiver.mss as u64;
        self.ack = match self.ack {
            _ if fate != DataFate::Next || is_second || self.receiver.has_ended() => AckDue::Now,
            AckDue::No => AckDue::At(now_ns + ACK_DELAY_NS),
            due => due,
        };
        if self.receiver.has_ended() {
            self.events.readable = true;
            self.state = match self.state {
                TcpState::Established => TcpState::CloseWait,
                TcpState::FinWait1 => TcpState::Closing,
                _ => TcpState::TimeWait,
            };
        }
    }
}

impl Agreed {
    /// What a SYN offers; `own_scale` is the shift that our SYN says, or will.
    pub(crate) fn of_syn(header: &SegmentHeader, own_scale: Option<u8>) -> Self {
        Self {
            // RFC 9293, 3.7.1.
            mss: usize::from(header.mss.unwrap_or(536)),
            scales: header.window_scale.zip(own_scale),
            has_sack: header.sack_permitted,
            timestamp: header.timestamps.map(|theirs| theirs.value),
        }
    }
}
