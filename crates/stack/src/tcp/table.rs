//! A table of flows: connections, handshakes, TIME-WAIT, timers. It does no I/O and reads no clock.
//!
//! An application has several, each under a lock of its own; a flow belongs to one. What a packet costs does not depend on how many flows there are.

use hashbrown::HashTable;
use headway_rings::prefetch::prefetch;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use super::connection::{Agreed, TcpConnection, TcpFailure, TcpSettings, TcpState, window_shift};
use super::flow::{FlowKey, FlowSecrets};
use super::listening::{AcceptQueue, WaitingConnection};
use super::segment::{SegmentHeader, TcpFlags, Timestamps};
use super::syn_cache::{PendingHandshake, SynCache};
use super::time_wait::{TimeWaitEntry, TimeWaitTable};
use super::timers::TimerWheel;
use super::wakers::Wakers;

/// Where segments go.
pub(crate) trait SegmentSink {
    /// Whether a segment can leave now.
    fn has_room(&mut self) -> bool;

    /// Segments of this flow stay unacknowledged: its neighbour may have another address, or be gone.
    fn doubt(&mut self, key: &FlowKey);

    /// Sends a segment, whose payload is in two parts.
    fn send(&mut self, key: &FlowKey, header: &SegmentHeader, payload: (&[u8], &[u8]));
}

#[derive(Debug)]
struct TableEntry {
    connection: TcpConnection,
    readers: Wakers,
    writers: Wakers,
    /// The flow is free for others: the connection is over.
    is_detached: bool,
    /// It has segments to send, and waits for room.
    is_blocked: bool,
}

#[derive(Debug)]
pub(crate) struct TcpTable {
    settings: TcpSettings,
    secrets: FlowSecrets,
    connections: Vec<Option<Box<TableEntry>>>,
    free: Vec<u32>,
    /// Connections by the hash of their flow. It has numbers only, so that all of it stays in a cache; the key is the connection's.
    flows: HashTable<u32>,
    listeners: HashMap<u16, Arc<AcceptQueue>>,
    handshakes: SynCache,
    time_wait: TimeWaitTable,
    timers: TimerWheel,
    fired: Vec<u32>,
    blocked: VecDeque<u32>,
    /// Connections without an owner that ended before the peer had acknowledged everything.
    silent_losses: u64,
    /// The latest time that it heard of.
    latest_ns: u64,
}

/// The readiness of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpReadiness {
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
}

impl TcpTable {
    pub(crate) fn new(settings: TcpSettings, secrets: FlowSecrets) -> Self {
        Self {
            settings,
            secrets,
            connections: Vec::new(),
            free: Vec::new(),
            flows: HashTable::new(),
            listeners: HashMap::new(),
            handshakes: SynCache::new(secrets),
            time_wait: TimeWaitTable::new(secrets),
            timers: TimerWheel::new(),
            fired: Vec::new(),
            blocked: VecDeque::new(),
            silent_losses: 0,
            latest_ns: 0,
        }
    }

    /// A thread's time, which it read before it had the table: never before that of the last thread. Timestamps that go back would be taken for old segments'.
    pub(crate) fn not_before(&mut self, now_ns: u64) -> u64 {
        self.latest_ns = self.latest_ns.max(now_ns);
        self.latest_ns
    }

    pub(crate) fn listen(&mut self, port: u16, queue: Arc<AcceptQueue>) {
        self.listeners.insert(port, queue);
    }

    pub(crate) fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Begins a connection. `None` if the flow is not free.
    pub(crate) fn connect(
        &mut self,
        key: FlowKey,
        patience_ns: u64,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) -> Option<u32> {
        if self.find(self.secrets.flow_hash(&key), &key).is_some()
            || self.handshakes.get(&key).is_some()
        {
            return None;
        }
        let mut first = self.secrets.first_sequence(&key, now_ns);
        if let Some(old) = self.time_wait.get(&key, now_ns) {
            if !old.may_be_taken(now_ns) {
                return None;
            }
            first = old.first_sequence(first);
            self.time_wait.remove(&key);
        }
        let (settings, secrets) = (self.settings, self.secrets);
        let connection =
            TcpConnection::connect(key, settings, &secrets, first, patience_ns, now_ns);
        let id = self.insert(connection);
        self.settle(id, now_ns, sink);
        Some(id)
    }

    fn insert(&mut self, connection: TcpConnection) -> u32 {
        let key = *connection.key();
        let entry = Some(Box::new(TableEntry {
            connection,
            readers: Wakers::default(),
            writers: Wakers::default(),
            is_detached: false,
            is_blocked: false,
        }));
        let id = match self.free.pop() {
            Some(id) => {
                self.connections[id as usize] = entry;
                id
            }
            None => {
                self.connections.push(entry);
                (self.connections.len() - 1) as u32
            }
        };
        let (connections, secrets) = (&self.connections, self.secrets);
        let rehash = |id: &u32| {
            connection_of(connections, *id)
                .map_or(0, |one| place_hash(secrets.flow_hash(one.key())))
        };
        self.flows
            .insert_unique(place_hash(secrets.flow_hash(&key)), id, rehash);
        id
    }

    /// The connection of a flow, by the flow's hash.
    fn find(&self, hash: u64, key: &FlowKey) -> Option<u32> {
        let is_it = |id: &u32| {
            self.connections[*id as usize]
                .as_deref()
                .is_some_and(|entry| {
                    // The segment, or its sender, needs nearly all of it.
                    prefetch(entry);
                    entry.connection.key() == key
                })
        };
        self.flows.find(place_hash(hash), is_it).copied()
    }

    fn entry(&mut self, id: u32) -> &mut TableEntry {
        let entry = self.connections[id as usize].as_deref_mut();
        let entry = entry.expect("an owner's connection stays");
        prefetch(entry);
        entry
    }

    /// Reads; `waker` is called when there may be more, if there is nothing yet.
    pub(crate) fn read(
        &mut self,
        id: u32,
        to: &mut [u8],
        waker: &Waker,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) -> Option<Result<usize, TcpFailure>> {
        let entry = self.entry(id);
        let result = entry.connection.read(to);
        if result.is_none() {
            entry.readers.add(waker);
        } else {
            self.settle(id, now_ns, sink);
        }
        result
    }

    /// Writes; `waker` is called when there may be room, if there is none.
    pub(crate) fn write(
        &mut self,
        id: u32,
        from: &[u8],
        waker: &Waker,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) -> Option<Result<usize, TcpFailure>> {
        let entry = self.entry(id);
        let result = entry.connection.write(from, now_ns);
        if result.is_none() {
            entry.writers.add(waker);
        } else {
            self.settle(id, now_ns, sink);
        }
        result
    }

    /// The readiness of a connection; `waker` is called when that which is missing comes.
    pub(crate) fn readiness(&mut self, id: u32, waker: &Waker) -> TcpReadiness {
        let entry = self.entry(id);
        let readiness = TcpReadiness {
            is_readable: entry.connection.is_readable(),
            is_writable: entry.connection.is_writable(),
        };
        if !readiness.is_readable {
            entry.readers.add(waker);
        }
        if !readiness.is_writable {
            entry.writers.add(waker);
        }
        readiness
    }

    /// `None` while the handshake goes on; `waker` is called after it.
    pub(crate) fn opened(&mut self, id: u32, waker: &Waker) -> Option<Result<(), TcpFailure>> {
        let entry = self.entry(id);
        match entry.connection.state() {
            TcpState::SynSent | TcpState::SynReceived => {
                entry.writers.add(waker);
                None
            }
            TcpState::Closed => Some(match entry.connection.failure() {
                Some(failure) => Err(failure),
                None => Ok(()),
            }),
            _ => Some(Ok(())),
        }
    }

    pub(crate) fn close(&mut self, id: u32, now_ns: u64, sink: &mut impl SegmentSink) {
        self.entry(id).connection.close(now_ns);
        self.settle(id, now_ns, sink);
    }

    /// The connection has no owner any more.
    pub(crate) fn abandon(&mut self, id: u32, now_ns: u64, sink: &mut impl SegmentSink) {
        self.entry(id).connection.abandon(now_ns);
        self.settle(id, now_ns, sink);
    }

    /// Whether a connection without an owner has something that its peer has not acknowledged.
    pub(crate) fn owes_anything(&self) -> bool {
        let mut entries = self.connections.iter().flatten();
        entries.any(|entry| entry.connection.is_orphan() && entry.connection.owes())
    }

    /// Connections that ended before their peers had acknowledged everything, and whose owners did not hear of it.
    pub(crate) fn silent_losses(&self) -> u64 {
        self.silent_losses
    }

    /// Connections, and those in TIME-WAIT.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.flows.len(), self.time_wait.len())
    }

    #[cfg(test)]
    pub(crate) fn flow_hash(&self, key: &FlowKey) -> u64 {
        self.secrets.flow_hash(key)
    }

    #[cfg(test)]
    pub(crate) fn handshakes(&self) -> usize {
        self.handshakes.len()
    }

    /// Places for connections, used or not.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.connections.len()
    }

    /// A segment came; `hash` is that of its [flow](FlowSecrets::flow_hash).
    pub(crate) fn on_segment(
        &mut self,
        (hash, key): (u64, &FlowKey),
        header: &SegmentHeader,
        payload: &[u8],
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) {
        if let Some(id) = self.find(hash, key) {
            if let Some(entry) = self.connections[id as usize].as_deref_mut() {
                entry.connection.on_segment(header, payload, now_ns);
            }
            return self.settle(id, now_ns, sink);
        }
        let mut old = None;
        if let Some(entry) = self.time_wait.get(key, now_ns).copied() {
            let is_new = is_syn(header) && entry.admits(header);
            if !is_new {
                if TimeWaitEntry::is_answered(header, payload) {
                    self.answer_late(key, &entry, now_ns, sink);
                }
                return;
            }
            self.time_wait.remove(key);
            old = Some(entry);
        }
        if header.flags.has(TcpFlags::RST) {
            let pending = self.handshakes.get(key);
            if pending
                .is_some_and(|pending| header.sequence == pending.remote_first.wrapping_add(1))
            {
                self.handshakes.remove(key);
            }
        } else if is_syn(header) {
            self.on_syn(key, header, old, now_ns, sink);
        } else if !self.on_last_of_handshake(key, header, payload, now_ns, sink) {
            refuse(key, header, payload, sink);
        }
    }

    fn on_syn(
        &mut self,
        key: &FlowKey,
        header: &SegmentHeader,
        old: Option<TimeWaitEntry>,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) {
        if !self.listeners.contains_key(&key.local_port) {
            return refuse(key, header, &[], sink);
        }
        let known = self.handshakes.get(key).copied();
        let handshake = match known {
            // Whoever began anew answers with a reset, and asks again. One who asks in another's name gets no place beyond the bounds.
            Some(known) => known,
            None => {
                let shift = window_shift(self.settings.buffer_bytes);
                let agreed = Agreed::of_syn(header, Some(shift));
                let first = self.secrets.first_sequence(key, now_ns);
                let first = old.map_or(first, |old| old.first_sequence(first));
                self.handshakes
                    .begin(*key, header.sequence, agreed, first, now_ns)
            }
        };
        self.answer_syn(key, &handshake, now_ns, sink);
    }

    fn answer_syn(
        &self,
        key: &FlowKey,
        handshake: &PendingHandshake,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) {
        let agreed = &handshake.agreed;
        let value = self.secrets.timestamp(key, now_ns);
        let header = SegmentHeader {
            from_port: key.local_port,
            to_port: key.remote_port,
            sequence: handshake.first,
            acknowledgement: handshake.remote_first.wrapping_add(1),
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: self.settings.buffer_bytes.min(65_535) as u16,
            mss: Some(self.settings.mss(key) as u16),
            window_scale: agreed.scales.map(|(_, ours)| ours),
            sack_permitted: agreed.has_sack,
            timestamps: agreed.timestamp.map(|echo| Timestamps { value, echo }),
            ..SegmentHeader::default()
        };
        if sink.has_room() {
            sink.send(key, &header, (&[], &[]));
        }
    }

    /// Takes the acknowledgement that ends a handshake. Returns `false` for one that ends none.
    fn on_last_of_handshake(
        &mut self,
        key: &FlowKey,
        header: &SegmentHeader,
        payload: &[u8],
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) -> bool {
        let Some(queue) = self.listeners.get(&key.local_port) else {
            return false;
        };
        if !header.flags.has(TcpFlags::ACK) || header.flags.has(TcpFlags::SYN) {
            return false;
        }
        let handshake = match self.handshakes.get(key) {
            Some(known) if known.first.wrapping_add(1) == header.acknowledgement => *known,
            Some(_) => return false,
            None => {
                let shift = window_shift(self.settings.buffer_bytes);
                match self.handshakes.of_cookie(key, header, shift, now_ns) {
                    Some(handshake) => handshake,
                    // A segment that overtook the one with the cookie: the latter is sent again.
                    None => return self.handshakes.awaits_cookies(now_ns),
                }
            }
        };
        if !queue.reserve() {
            // The cache asks again, for as long as the client answers.
            self.handshakes.postpone(key, now_ns);
            return true;
        }
        let queue = Arc::clone(queue);
        self.handshakes.remove(key);
        let numbers = (handshake.first, handshake.remote_first);
        let mut connection = TcpConnection::accept(
            *key,
            self.settings,
            &self.secrets,
            &handshake.agreed,
            numbers,
            now_ns,
        );
        connection.on_segment(header, payload, now_ns);
        let id = self.insert(connection);
        if !queue.push(WaitingConnection { key: *key, id }) {
            self.entry(id).connection.abandon(now_ns);
        }
        self.settle(id, now_ns, sink);
        true
    }

    /// Acknowledges a segment for a connection in TIME-WAIT.
    fn answer_late(
        &self,
        key: &FlowKey,
        entry: &TimeWaitEntry,
        now_ns: u64,
        sink: &mut impl SegmentSink,
    ) {
        let value = self.secrets.timestamp(key, now_ns);
        let header = SegmentHeader {
            from_port: key.local_port,
            to_port: key.remote_port,
            sequence: entry.next,
            acknowledgement: entry.expected,
            flags: TcpFlags::ACK,
            timestamps: entry.timestamp.map(|echo| Timestamps { value, echo }),
            ..SegmentHeader::default()
        };
        if sink.has_room() {
            sink.send(key, &header, (&[], &[]));
        }
    }

    /// Does what is due; returns whether anything was.
    pub(crate) fn poll(&mut self, now_ns: u64, sink: &mut impl SegmentSink) -> bool {
        let mut did = false;
        let mut fired = std::mem::take(&mut self.fired);
        self.timers.advance(now_ns, &mut fired);
        for id in fired.drain(..) {
            if let Some(entry) = self.connections[id as usize].as_deref_mut() {
                entry.connection.on_time(now_ns);
                self.settle(id, now_ns, sink);
                did = true;
            }
        }
        self.fired = fired;
        while let Some((key, handshake)) = self.handshakes.next_retry(now_ns) {
            self.answer_syn(&key, &handshake, now_ns, sink);
            did = true;
        }
        for _ in 0..self.blocked.len() {
            if !sink.has_room() {
                break;
            }
            let Some(id) = self.blocked.pop_front() else {
                break;
            };
            if let Some(entry) = self.connections[id as usize].as_deref_mut()
                && std::mem::take(&mut entry.is_blocked)
            {
                self.settle(id, now_ns, sink);
                did = true;
            }
        }
        self.time_wait.expire(now_ns);
        did
    }

    /// The next time to call [`poll`](Self::poll); 0 while segments wait for room.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        if !self.blocked.is_empty() {
            return Some(0);
        }
        let times = [self.timers.next_ns(), self.handshakes.next_ns()];
        times.into_iter().flatten().min()
    }

    /// Sends what a connection has to send, wakes those who wait for it, and removes it when it is over.
    fn settle(&mut self, id: u32, now_ns: u64, sink: &mut impl SegmentSink) {
        let Some(entry) = self.connections[id as usize].as_deref_mut() else {
            return;
        };
        let key = *entry.connection.key();
        if entry.connection.take_doubt() {
            sink.doubt(&key);
        }
        while sink.has_room() {
            let Some(segment) = entry.connection.next_segment(now_ns) else {
                break;
            };
            sink.send(&key, &segment.header, segment.payload);
        }
        if !sink.has_room() && !entry.is_blocked {
            entry.is_blocked = true;
            self.blocked.push_back(id);
        }
        let events = entry.connection.take_events();
        if events.readable {
            entry.readers.wake();
        }
        if events.writable {
            entry.writers.wake();
        }
        // Before it is removed, which waits for room in the lane: a flush must not miss it.
        self.silent_losses += u64::from(entry.connection.take_silent_loss());
        let state = entry.connection.state();
        let is_over = matches!(state, TcpState::Closed | TcpState::TimeWait) && !entry.is_blocked;
        if is_over && !entry.is_detached {
            entry.is_detached = true;
            let hash = place_hash(self.secrets.flow_hash(&key));
            if let Ok(place) = self.flows.find_entry(hash, |other| *other == id) {
                place.remove();
            }
            self.timers.clear(id);
            if state == TcpState::TimeWait {
                let numbers = entry.connection.last_numbers();
                self.time_wait
                    .insert(key, TimeWaitEntry::new(numbers, now_ns));
            }
        }
        if is_over && entry.connection.is_orphan() {
            self.connections[id as usize] = None;
            self.free.push(id);
        } else if !is_over {
            self.timers.set(id, entry.connection.deadline_ns());
        }
    }
}

/// The hash for a place in this table: the low bits of a flow's hash chose the table itself, and are the same for all here.
fn place_hash(hash: u64) -> u64 {
    hash.rotate_left(32)
}

fn connection_of(connections: &[Option<Box<TableEntry>>], id: u32) -> Option<&TcpConnection> {
    connections[id as usize]
        .as_deref()
        .map(|entry| &entry.connection)
}

fn is_syn(header: &SegmentHeader) -> bool {
    let others = TcpFlags::ACK.with(TcpFlags::RST).with(TcpFlags::FIN);
    header.flags.has(TcpFlags::SYN) && header.flags.0 & others.0 == 0
}

/// Answers a segment that belongs to nothing with a reset (RFC 9293, 3.10.7.1).
fn refuse(key: &FlowKey, header: &SegmentHeader, payload: &[u8], sink: &mut impl SegmentSink) {
    if header.flags.has(TcpFlags::RST) || !sink.has_room() {
        return;
    }
    let mut reset = SegmentHeader {
        from_port: key.local_port,
        to_port: key.remote_port,
        flags: TcpFlags::RST,
        ..SegmentHeader::default()
    };
    if header.flags.has(TcpFlags::ACK) {
        reset.sequence = header.acknowledgement;
    } else {
        let phantoms = [TcpFlags::SYN, TcpFlags::FIN].map(|flag| header.flags.has(flag) as u32);
        let length = payload.len() as u32 + phantoms[0] + phantoms[1];
        reset.acknowledgement = header.sequence.wrapping_add(length);
        reset.flags = TcpFlags::RST.with(TcpFlags::ACK);
    }
    sink.send(key, &reset, (&[], &[]));
}
