//! Handshakes that clients began: a bounded cache, and SYN cookies for those beyond it (RFC 4987), so that nobody is refused whoever else sends SYNs.
//!
//! The cache sends its answer again when that was lost. A cookie is a first sequence number from which the client's acknowledgement tells all that the cache
//! would have known: the shift of windows, whether there are selective acknowledgements, one of eight segment sizes, and a code that others cannot make.

use std::collections::{HashMap, VecDeque};

use super::connection::Agreed;
use super::flow::{FlowKey, FlowSecrets, cookie_minute};
use super::segment::{SegmentHeader, SequenceNumber};
use super::time::{MILLISECOND_NS, SECOND_NS};

/// The most handshakes of a table.
pub(crate) const MOST_HANDSHAKES: usize = 512;
/// The time after which an answer is sent again; it doubles each time.
const RETRY_NS: u64 = 100 * MILLISECOND_NS;
/// The answers to a SYN.
const ANSWERS: usize = 6;
/// Cookies count for as long after the last was sent.
const COOKIES_NS: u64 = 120 * SECOND_NS;
/// The segment sizes that a cookie can say. The first is the least that Linux sends (`TCP_MIN_MSS`).
const SIZES: [u16; 8] = [88, 536, 1200, 1360, 1440, 1460, 4312, 8940];
/// Instead of the shift, where the client does not scale windows.
const UNSCALED: u8 = 15;

/// A handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingHandshake {
    /// Our first sequence number, and the client's.
    pub(crate) first: SequenceNumber,
    pub(crate) remote_first: SequenceNumber,
    pub(crate) agreed: Agreed,
    /// The time when it began, which tells it from a later one of the flow.
    begun_ns: u64,
}

#[derive(Debug)]
pub(crate) struct SynCache {
    pending: HashMap<FlowKey, PendingHandshake, FlowSecrets>,
    /// By answers so far: handshakes in the order of their next.
    retries: [VecDeque<(u64, u64, FlowKey)>; ANSWERS],
    secrets: FlowSecrets,
    /// The last time that the cache was full.
    full_ns: Option<u64>,
}

impl SynCache {
    pub(crate) fn new(secrets: FlowSecrets) -> Self {
        Self {
            pending: HashMap::with_hasher(secrets),
            retries: [const { VecDeque::new() }; ANSWERS],
            secrets,
            full_ns: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    #[inline]
    pub(crate) fn get(&self, key: &FlowKey) -> Option<&PendingHandshake> {
        self.pending.get(key)
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        self.pending.remove(key);
    }

    /// Begins a handshake of a flow that has none: what to answer a SYN with. `first` is our sequence number if there is a place.
    pub(crate) fn begin(
        &mut self,
        key: FlowKey,
        remote_first: SequenceNumber,
        agreed: Agreed,
        first: SequenceNumber,
        now_ns: u64,
    ) -> PendingHandshake {
        let mut handshake = PendingHandshake {
            first,
            remote_first,
            agreed,
            begun_ns: now_ns,
        };
        // Places of handshakes that ended are taken again when their time for an answer comes.
        let waiting: usize = self.retries.iter().map(VecDeque::len).sum();
        let has_place = self.pending.len() < MOST_HANDSHAKES && waiting < 64 * MOST_HANDSHAKES;
        if has_place {
            self.pending.insert(key, handshake);
            self.retries[0].push_back((now_ns + RETRY_NS, now_ns, key));
        } else {
            self.full_ns = Some(now_ns);
            handshake.first = self.cookie(&key, remote_first, &agreed, now_ns);
        }
        handshake
    }

    /// The client has answered, and there is no place for its connection yet: the handshake begins anew.
    pub(crate) fn postpone(&mut self, key: &FlowKey, now_ns: u64) {
        if let Some(handshake) = self.pending.get_mut(key)
            && handshake.begun_ns != now_ns
        {
            handshake.begun_ns = now_ns;
            self.retries[0].push_back((now_ns + RETRY_NS, now_ns, *key));
        }
    }

    /// Whether cookies were sent that may still come back.
    pub(crate) fn awaits_cookies(&self, now_ns: u64) -> bool {
        self.full_ns.is_some_and(|full| now_ns < full + COOKIES_NS)
    }

    fn cookie(
        &self,
        key: &FlowKey,
        remote_first: SequenceNumber,
        agreed: &Agreed,
        now_ns: u64,
    ) -> SequenceNumber {
        let size = SIZES
            .iter()
            .rposition(|size| usize::from(*size) <= agreed.mss);
        let shift = agreed.scales.map_or(UNSCALED, |(theirs, _)| theirs);
        let meaning = size.unwrap_or(0) as u8 | shift << 3 | u8::from(agreed.has_sack) << 7;
        let minute = cookie_minute(now_ns);
        let code = self.secrets.cookie_code(key, remote_first, meaning, minute);
        code << 8 | u32::from(meaning)
    }

    /// The handshake that an acknowledgement ends, if it has a cookie. `own_shift` is what our answer said.
    pub(crate) fn of_cookie(
        &self,
        key: &FlowKey,
        header: &SegmentHeader,
        own_shift: u8,
        now_ns: u64,
    ) -> Option<PendingHandshake> {
        if !self.awaits_cookies(now_ns) {
            return None;
        }
        let first = header.acknowledgement.wrapping_sub(1);
        let remote_first = header.sequence.wrapping_sub(1);
        let meaning = first as u8;
        let minute = cookie_minute(now_ns);
        let is_code =
            |minute| self.secrets.cookie_code(key, remote_first, meaning, minute) == first >> 8;
        if !is_code(minute) && !is_code(minute.wrapping_sub(1)) {
            return None;
        }
        let shift = meaning >> 3 & 15;
        Some(PendingHandshake {
            first,
            remote_first,
            agreed: Agreed {
                mss: usize::from(SIZES[usize::from(meaning & 7)]),
                scales: (shift != UNSCALED).then_some((shift, own_shift)),
                has_sack: meaning & 0x80 != 0,
                timestamp: header.timestamps.map(|theirs| theirs.value),
            },
            begun_ns: now_ns,
        })
    }

    /// The next time that an answer is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let fronts = self.retries.iter().filter_map(VecDeque::front);
        fronts.map(|retry| retry.0).min()
    }

    /// The next handshake whose answer is due again. Those whose last answer found no acknowledgement are forgotten.
    pub(crate) fn next_retry(&mut self, now_ns: u64) -> Option<(FlowKey, PendingHandshake)> {
        for answers in 0..ANSWERS {
            while let Some(&(at_ns, begun_ns, key)) = self.retries[answers].front()
                && at_ns <= now_ns
            {
                self.retries[answers].pop_front();
                let Some(handshake) = self.pending.get(&key).copied() else {
                    continue;
                };
                if handshake.begun_ns != begun_ns {
                    continue;
                }
                let Some(later) = self.retries.get_mut(answers + 1) else {
                    self.pending.remove(&key);
                    continue;
                };
                later.push_back((now_ns + (RETRY_NS << (answers + 1)), begun_ns, key));
                return Some((key, handshake));
            }
        }
        None
    }
}
