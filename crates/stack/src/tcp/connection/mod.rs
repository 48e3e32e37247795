//! A connection: a state machine of segments and the time, without I/O or a clock.
//!
//! Segments come in by [`TcpConnection::on_segment`], the time by [`TcpConnection::on_time`], the application's wishes by
//! [`write`](TcpConnection::write) and the like. After each of them [`TcpConnection::next_segment`] gives the segments to send, one at a time: a full lane
//! stops that, and nothing is lost. [`TcpConnection::deadline_ns`] is the next time that matters.

mod input;
mod output;
mod receiver;
mod sender;

pub(crate) use receiver::window_shift;

use super::flow::{FlowKey, FlowSecrets, timestamp_clock};
use super::rtt::LEAST_NS;
use super::segment::{SequenceNumber, TIMESTAMP_BYTES};
use super::time::{MILLISECOND_NS, SECOND_NS};
use receiver::StreamReceiver;
use sender::StreamSender;

/// The delay of an acknowledgement that nothing else carries: far below the least timeout of a peer of this kind, long enough for an answer.
const ACK_DELAY_NS: u64 = MILLISECOND_NS;
/// The interval of keep-alive probes after the first, and how many of them.
const PROBE_NS: u64 = SECOND_NS;
const PROBES: u32 = 5;
/// The time that the peer of a connection without an owner has for its FIN, once it has everything: it need not ever send one.
const ORPHAN_NS: u64 = 60 * SECOND_NS;

/// The states of RFC 9293, 3.3.2. Listening is the [listener's](super::listening), and what comes before the handshake's end the
/// [SYN cache's](super::syn_cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpState {
    SynSent,
    /// Of a simultaneous open only.
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Why a connection ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpFailure {
    /// A reset answered the SYN.
    Refused,
    /// A reset came.
    Reset,
    /// The peer was silent for too long.
    TimedOut,
}

/// Settings of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpSettings {
    /// Bytes of each of the two buffers.
    pub(crate) buffer_bytes: usize,
    /// The longest packet.
    pub(crate) mtu: usize,
    /// The time in which a peer must acknowledge something, while there is something to acknowledge.
    pub(crate) user_timeout_ns: u64,
    /// The silence after which an idle peer is probed.
    pub(crate) keep_alive_ns: Option<u64>,
}

impl TcpSettings {
    /// The longest segment to receive in packets of this family.
    pub(crate) fn mss(&self, key: &FlowKey) -> usize {
        let headers = if key.remote_ip.is_ipv6() { 60 } else { 40 };
        self.mtu.saturating_sub(headers).clamp(88, 65_495)
    }
}

/// What a handshake agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agreed {
    /// The peer's maximum segment size.
    pub(crate) mss: usize,
    /// The shifts of the peer's windows and ours, if both sides scale.
    pub(crate) scales: Option<(u8, u8)>,
    pub(crate) has_sack: bool,
    /// The peer's latest timestamp, if both sides have them.
    pub(crate) timestamp: Option<u32>,
}

/// What the application may have waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TcpEvents {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckDue {
    No,
    Now,
    At(u64),
}

#[derive(Debug, Clone, Copy)]
struct TimestampState {
    /// Added to the clock.
    offset: u32,
    /// The value to echo.
    recent: u32,
}

#[derive(Debug)]
pub(crate) struct TcpConnection {
    key: FlowKey,
    state: TcpState,
    failure: Option<TcpFailure>,
    settings: TcpSettings,
    sender: StreamSender,
    receiver: StreamReceiver,
    timestamps: Option<TimestampState>,
    events: TcpEvents,
    ack: AckDue,
    /// The SYN, or the SYN and its acknowledgement, is to be sent.
    is_syn_due: bool,
    is_probe_due: bool,
    is_reset_due: bool,
    /// Two timeouts passed in succession: a loss alone explains one.
    is_in_doubt: bool,
    /// When the owner went: nobody reads or writes any more.
    orphan_since_ns: Option<u64>,
    /// The owner heard of the failure.
    is_failure_told: bool,
    /// Of a retransmission, or a probe of a shut window.
    retransmit_at_ns: Option<u64>,
    /// The end of the wait for the FIN of an orphan's peer.
    orphan_until_ns: Option<u64>,
    /// The last time that the peer acknowledged something new, or that something new waited for it.
    progress_ns: u64,
    /// The last time that a segment came.
    heard_ns: u64,
    probes: u32,
    /// The last answer to a segment outside the window without data.
    challenged_ns: Option<u64>,
    /// The user timeout once the connection is open.
    open_timeout_ns: u64,
    /// The sequence number of a reset for an older connection of the flow, which the peer still has.
    stranger: Option<SequenceNumber>,
}

impl TcpConnection {
    fn new(
        key: FlowKey,
        settings: TcpSettings,
        secrets: &FlowSecrets,
        first: SequenceNumber,
        now_ns: u64,
    ) -> Self {
        Self {
            key,
            state: TcpState::SynSent,
            failure: None,
            settings,
            sender: StreamSender::new(first, settings.buffer_bytes),
            receiver: StreamReceiver::new(settings.buffer_bytes, settings.mss(&key)),
            timestamps: Some(TimestampState {
                offset: secrets.timestamp_offset(&key),
                recent: 0,
            }),
            events: TcpEvents::default(),
            ack: AckDue::No,
            is_syn_due: false,
            is_probe_due: false,
            is_reset_due: false,
            is_in_doubt: false,
            orphan_since_ns: None,
            is_failure_told: false,
            retransmit_at_ns: None,
            orphan_until_ns: None,
            progress_ns: now_ns,
            heard_ns: now_ns,
            probes: 0,
            challenged_ns: None,
            open_timeout_ns: settings.user_timeout_ns,
            stranger: None,
        }
    }

    /// A connection whose SYN is to be sent. It fails without an answer within `patience_ns`.
    pub(crate) fn connect(
        key: FlowKey,
        settings: TcpSettings,
        secrets: &FlowSecrets,
        first: SequenceNumber,
        patience_ns: u64,
        now_ns: u64,
    ) -> Self {
        let mut connection = Self::new(key, settings, secrets, first, now_ns);
        connection.settings.user_timeout_ns = patience_ns;
        connection.is_syn_due = true;
        connection
    }

    /// A connection whose handshake is over but for the acknowledgement of our SYN, which comes to it next. `first` and `remote_first` are the numbers of both
    /// SYNs.
    pub(crate) fn accept(
        key: FlowKey,
        settings: TcpSettings,
        secrets: &FlowSecrets,
        agreed: &Agreed,
        (first, remote_first): (SequenceNumber, SequenceNumber),
        now_ns: u64,
    ) -> Self {
        let mut connection = Self::new(key, settings, secrets, first, now_ns);
        connection.receiver.begin(remote_first);
        connection.agree(agreed);
        connection.sender.established();
        connection.state = TcpState::Established;
        connection
    }

    fn agree(&mut self, agreed: &Agreed) {
        let (theirs, ours) = agreed.scales.unwrap_or((0, 0));
        self.receiver.scale = ours;
        match (&mut self.timestamps, agreed.timestamp) {
            (Some(own), Some(recent)) => own.recent = recent,
            _ => self.timestamps = None,
        }
        let options = self.timestamps.map_or(0, |_| TIMESTAMP_BYTES);
        let most = agreed.mss.min(self.settings.mss(&self.key));
        let mss = most.saturating_sub(options).max(32);
        self.sender.agree(mss, theirs, agreed.has_sack);
    }

    #[inline]
    pub(crate) fn key(&self) -> &FlowKey {
        &self.key
    }

    #[inline]
    pub(crate) fn state(&self) -> TcpState {
        self.state
    }

    pub(crate) fn failure(&self) -> Option<TcpFailure> {
        self.failure
    }

    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan_since_ns.is_some()
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> TcpEvents {
        std::mem::take(&mut self.events)
    }

    /// Whether the way to the peer may be broken, since the last call.
    pub(crate) fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.is_in_doubt)
    }

    /// Whether a reader would not wait.
    pub(crate) fn is_readable(&self) -> bool {
        self.receiver.readable() > 0 || self.receiver.has_ended() || self.state == TcpState::Closed
    }

    /// Whether a writer would not wait.
    pub(crate) fn is_writable(&self) -> bool {
        let may_write = matches!(self.state, TcpState::Established | TcpState::CloseWait);
        let is_opening = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        !is_opening && (!may_write || self.sender.room() > 0)
    }

    /// Whether the peer has not acknowledged all data, and the end.
    pub(crate) fn owes(&self) -> bool {
        let is_over = matches!(self.state, TcpState::Closed | TcpState::TimeWait);
        !is_over && self.sender.owes()
    }

    /// Whether it ended before the peer acknowledged all data and the end, and no owner heard of it. Says so once.
    pub(crate) fn take_silent_loss(&mut self) -> bool {
        // Until the SYN is acknowledged nothing can be written.
        let is_lost = self.state == TcpState::Closed
            && self.is_orphan()
            && self.sender.unacknowledged() > 0
            && self.sender.owes();
        is_lost && !std::mem::replace(&mut self.is_failure_told, true)
    }

    /// The error of a connection that is over.
    fn tell_failure(&mut self) -> TcpFailure {
        self.is_failure_told = self.state == TcpState::Closed;
        self.failure.unwrap_or(TcpFailure::Reset)
    }

    /// Reads what has come; `None` if that is nothing yet.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> Option<Result<usize, TcpFailure>> {
        let bytes = self.receiver.read(to);
        if bytes > 0 {
            if self.receiver.is_update_due() && self.is_synchronised() {
                self.ack = AckDue::Now;
            }
            return Some(Ok(bytes));
        }
        if self.receiver.has_ended() {
            return Some(Ok(0));
        }
        let is_closed = self.state == TcpState::Closed;
        is_closed.then(|| Err(self.tell_failure()))
    }

    /// Writes as much as there is room for; `None` if there is none. An error once the connection is closed or closing.
    pub(crate) fn write(&mut self, from: &[u8], now_ns: u64) -> Option<Result<usize, TcpFailure>> {
        if !matches!(self.state, TcpState::Established | TcpState::CloseWait) {
            return Some(Err(self.tell_failure()));
        }
        if !self.sender.owes() {
            self.progress_ns = now_ns;
        }
        let bytes = self.sender.push(from);
        (bytes > 0).then_some(Ok(bytes))
    }

    /// Ends writing.
    pub(crate) fn close(&mut self, now_ns: u64) {
        self.state = match self.state {
            TcpState::Established => TcpState::FinWait1,
            TcpState::CloseWait => TcpState::LastAck,
            // Nothing was sent that the peer would miss.
            TcpState::SynSent | TcpState::SynReceived => return self.ended(None),
            _ => return,
        };
        if !self.sender.owes() {
            self.progress_ns = now_ns;
        }
        self.sender.end();
        self.events.writable = true;
    }

    /// The owner has gone. The connection goes on by itself: it closes, or resets if data was not read (RFC 2525, 2.17).
    pub(crate) fn abandon(&mut self, now_ns: u64) {
        self.orphan_since_ns = Some(now_ns);
        if self.receiver.readable() > 0 {
            self.abort();
        } else {
            self.close(now_ns);
            self.bound_last_wait(now_ns);
        }
    }

    /// Bounds the wait for the peer's FIN, where nobody is left to wait for it.
    fn bound_last_wait(&mut self, now_ns: u64) {
        if self.is_orphan() && self.state == TcpState::FinWait2 {
            self.orphan_until_ns = Some(now_ns + ORPHAN_NS);
        }
    }

    /// Resets the connection.
    pub(crate) fn abort(&mut self) {
        if self.is_synchronised() && self.state != TcpState::TimeWait {
            self.is_reset_due = true;
        }
        self.ended(None);
    }

    fn is_synchronised(&self) -> bool {
        !matches!(self.state, TcpState::SynSent | TcpState::Closed)
    }

    /// It is over, well or not.
    fn ended(&mut self, failure: Option<TcpFailure>) {
        self.state = TcpState::Closed;
        self.failure = self.failure.or(failure);
        self.ack = AckDue::No;
        self.retransmit_at_ns = None;
        self.orphan_until_ns = None;
        (self.is_syn_due, self.is_probe_due) = (false, false);
        self.events = TcpEvents {
            readable: true,
            writable: true,
        };
    }

    /// Fails, and tells the peer.
    fn fail(&mut self, failure: TcpFailure) {
        self.is_reset_due = self.is_synchronised();
        self.ended(Some(failure));
    }

    fn timestamp_value(&self, now_ns: u64) -> Option<(u32, u32)> {
        let own = self.timestamps?;
        Some((own.offset.wrapping_add(timestamp_clock(now_ns)), own.recent))
    }

    /// What a [TIME-WAIT entry](super::time_wait) needs: the next sequence numbers of both sides, and the peer's latest timestamp.
    pub(crate) fn last_numbers(&self) -> (SequenceNumber, SequenceNumber, Option<u32>) {
        (
            self.sender.sequence_of(self.sender.next()),
            self.receiver.sequence_of(self.receiver.next()),
            self.timestamps.map(|own| own.recent),
        )
    }

    /// The next time to call [`on_time`](Self::on_time).
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        let ack = match self.ack {
            AckDue::At(at) => Some(at),
            _ => None,
        };
        let times = [
            ack,
            self.retransmit_at_ns,
            self.orphan_until_ns,
            self.keep_alive_at_ns(),
        ];
        times.into_iter().flatten().min()
    }

    fn keep_alive_at_ns(&self) -> Option<u64> {
        let idle_ns = self.settings.keep_alive_ns?;
        let may = matches!(
            self.state,
            TcpState::Established | TcpState::CloseWait | TcpState::FinWait2
        );
        let after = idle_ns.saturating_add(u64::from(self.probes) * PROBE_NS);
        (may && !self.sender.owes()).then_some(self.heard_ns.saturating_add(after))
    }

    /// Does what is due.
    pub(crate) fn on_time(&mut self, now_ns: u64) {
        if matches!(self.state, TcpState::Closed | TcpState::TimeWait) {
            return;
        }
        if self.orphan_until_ns.is_some_and(|until| until <= now_ns) {
            return self.fail(TcpFailure::TimedOut);
        }
        if matches!(self.ack, AckDue::At(at) if at <= now_ns) {
            self.ack = AckDue::Now;
        }
        if self.keep_alive_at_ns().is_some_and(|at| at <= now_ns) {
            if self.probes >= PROBES {
                return self.fail(TcpFailure::TimedOut);
            }
            self.probes += 1;
            self.is_probe_due = true;
        }
        if self.retransmit_at_ns.is_some_and(|at| at <= now_ns) {
            self.on_retransmission_time(now_ns);
        }
    }

    fn on_retransmission_time(&mut self, now_ns: u64) {
        let since = if self.sender.has_outstanding() && self.sender.window() > 0 {
            self.progress_ns
        } else {
            // While a peer says that its window is shut it is alive, however long that lasts. Without an owner nobody could end that wait.
            let alive_ns = self.orphan_since_ns.unwrap_or(self.heard_ns);
            self.progress_ns.max(alive_ns)
        };
        let until = since.saturating_add(self.settings.user_timeout_ns);
        if until <= now_ns {
            return self.fail(TcpFailure::TimedOut);
        }
        self.is_in_doubt = self.sender.rtt().expirations() > 0;
        if matches!(self.state, TcpState::SynSent | TcpState::SynReceived) {
            self.sender.rtt().expired();
            self.is_syn_due = true;
        } else if self.sender.has_outstanding() {
            self.sender.timed_out();
        } else if self.sender.is_shut() {
            self.sender.rtt().expired();
            self.sender.force();
            self.is_probe_due = self.sender.window() == 0;
        } else {
            self.retransmit_at_ns = None;
            return;
        }
        self.retransmit_at_ns = Some((now_ns + self.retransmission_wait_ns()).min(until));
    }

    /// The time until a segment, or a probe of a shut window, is sent again.
    fn retransmission_wait_ns(&self) -> u64 {
        let wait_ns = self.sender.timeout_ns();
        let is_opening = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        if is_opening || self.sender.has_outstanding() && self.sender.window() > 0 {
            return wait_ns;
        }
        // Several probes may get lost before the user timeout passes.
        wait_ns.min((self.settings.user_timeout_ns / 8).max(LEAST_NS))
    }
}
