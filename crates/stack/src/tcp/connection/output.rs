//! The segments that a connection sends.

use super::{AckDue, TcpConnection, TcpState};
use crate::tcp::connection::sender::SendRange;
use crate::tcp::segment::{SackBlocks, SegmentHeader, TcpFlags, Timestamps};

/// A segment to send, whose payload is in two parts.
#[derive(Debug)]
pub(crate) struct OutgoingSegment<'a> {
    pub(crate) header: SegmentHeader,
    pub(crate) payload: (&'a [u8], &'a [u8]),
}

impl TcpConnection {
    /// The next segment to send, which counts as sent.
    pub(crate) fn next_segment(&mut self, now_ns: u64) -> Option<OutgoingSegment<'_>> {
        if std::mem::take(&mut self.is_reset_due) {
            let position = self.sender.reset_position();
            return Some(self.bare(TcpFlags::RST.with(TcpFlags::ACK), position, now_ns));
        }
        match self.state {
            TcpState::Closed => None,
            TcpState::SynSent | TcpState::SynReceived => self.next_syn(now_ns),
            _ => self.next_of_stream(now_ns),
        }
    }

    fn next_syn(&mut self, now_ns: u64) -> Option<OutgoingSegment<'_>> {
        if let Some(sequence) = self.stranger.take() {
            let header = SegmentHeader {
                sequence,
                flags: TcpFlags::RST,
                timestamps: None,
                ..self.header(now_ns)
            };
            return Some(OutgoingSegment {
                header,
                payload: (&[], &[]),
            });
        }
        if !std::mem::take(&mut self.is_syn_due) {
            return None;
        }
        self.sender.sent_syn(now_ns);
        self.ensure_retransmission(now_ns);
        let is_answer = self.state == TcpState::SynReceived;
        let header = SegmentHeader {
            sequence: self.sender.sequence_of(0),
            acknowledgement: if is_answer {
                self.receiver.sequence_of(1)
            } else {
                0
            },
            flags: if is_answer {
                TcpFlags::SYN.with(TcpFlags::ACK)
            } else {
                TcpFlags::SYN
            },
            window: self.receiver.syn_window(),
            mss: Some(self.receiver.mss as u16),
            window_scale: Some(self.receiver.scale),
            sack_permitted: true,
            ..self.header(now_ns)
        };
        Some(OutgoingSegment {
            header,
            payload: (&[], &[]),
        })
    }

    fn next_of_stream(&mut self, now_ns: u64) -> Option<OutgoingSegment<'_>> {
        if let Some(range) = self.sender.next_range() {
            return Some(self.data(range, now_ns));
        }
        if std::mem::take(&mut self.is_probe_due) {
            // A segment before the window makes the peer tell where it is.
            let position = self.sender.unacknowledged().saturating_sub(1);
            return Some(self.bare(TcpFlags::ACK, position, now_ns));
        }
        if self.sender.is_shut() && self.retransmit_at_ns.is_none() {
            self.ensure_retransmission(now_ns);
        }
        if self.ack != AckDue::Now {
            return None;
        }
        let position = self.sender.next();
        Some(self.bare(TcpFlags::ACK, position, now_ns))
    }

    fn data(&mut self, range: SendRange, now_ns: u64) -> OutgoingSegment<'_> {
        self.sender.sent(range, now_ns);
        self.ensure_retransmission(now_ns);
        let mut flags = TcpFlags::ACK;
        if range.has_fin {
            flags = flags.with(TcpFlags::FIN);
        }
        if range.bytes > 0 && self.sender.is_last(range) {
            flags = flags.with(TcpFlags::PSH);
        }
        let header = self.acknowledging(flags, range.first, now_ns);
        OutgoingSegment {
            header,
            payload: self.sender.payload(range),
        }
    }

    fn bare(&mut self, flags: TcpFlags, position: u64, now_ns: u64) -> OutgoingSegment<'_> {
        let mut header = self.acknowledging(flags, position, now_ns);
        if self.receiver.has_gap() && self.sender.has_sack && !flags.has(TcpFlags::RST) {
            header.sack = self.receiver.sack_blocks();
        }
        OutgoingSegment {
            header,
            payload: (&[], &[]),
        }
    }

    fn acknowledging(&mut self, flags: TcpFlags, position: u64, now_ns: u64) -> SegmentHeader {
        self.ack = AckDue::No;
        SegmentHeader {
            sequence: self.sender.sequence_of(position),
            acknowledgement: self.receiver.sequence_of(self.receiver.next()),
            flags,
            window: self.receiver.announce(),
            ..self.header(now_ns)
        }
    }

    fn header(&self, now_ns: u64) -> SegmentHeader {
        let timestamps = self.timestamp_value(now_ns);
        SegmentHeader {
            from_port: self.key.local_port,
            to_port: self.key.remote_port,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: SackBlocks::default(),
            ..SegmentHeader::default()
        }
    }

    /// Starts the timer, unless it runs.
    fn ensure_retransmission(&mut self, now_ns: u64) {
        if self.retransmit_at_ns.is_none() {
            let until = now_ns.max(
                self.progress_ns
                    .saturating_add(self.settings.user_timeout_ns),
            );
            let at = now_ns + self.retransmission_wait_ns();
            self.retransmit_at_ns = Some(at.min(until));
        }
    }
}
