//! A network of two hosts in virtual time.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::Waker;

use crate::tcp::connection::{TcpFailure, TcpSettings};
use crate::tcp::flow::{FlowKey, FlowSecrets};
use crate::tcp::listening::AcceptQueue;
use crate::tcp::segment::{SegmentHeader, TcpFlags};
use crate::tcp::table::{SegmentSink, TcpTable};
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

pub(super) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(super) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(super) const PORT: u16 = 80;

/// A segment on its way, encoded.
#[derive(Debug, Clone)]
pub(super) struct SentSegment {
    pub(super) key: FlowKey,
    pub(super) bytes: Vec<u8>,
}

impl SentSegment {
    pub(super) fn header(&self) -> SegmentHeader {
        SegmentHeader::parse(&self.bytes).expect("whole").0
    }
}

/// What a host sends, up to the room of its lane.
#[derive(Debug)]
pub(super) struct SentSegments {
    pub(super) sent: Vec<SentSegment>,
    pub(super) room: usize,
    /// How often a flow's way was doubted.
    pub(super) doubts: usize,
}

impl SegmentSink for SentSegments {
    fn has_room(&mut self) -> bool {
        self.sent.len() < self.room
    }

    fn doubt(&mut self, _: &FlowKey) {
        self.doubts += 1;
    }

    fn send(&mut self, key: &FlowKey, header: &SegmentHeader, payload: (&[u8], &[u8])) {
        let mut bytes = vec![0; 64];
        let length = header.write(&mut bytes);
        bytes.truncate(length);
        bytes.extend(payload.0);
        bytes.extend(payload.1);
        self.sent.push(SentSegment { key: *key, bytes });
    }
}

/// How bad a wire is, of a thousand segments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Badness {
    pub(super) lost: u64,
    pub(super) twice: u64,
    pub(super) late: u64,
    pub(super) corrupt: u64,
}

pub(super) struct Wire {
    pub(super) now_ns: u64,
    pub(super) hosts: [TcpTable; 2],
    pub(super) queue: Arc<AcceptQueue>,
    /// By the time of arrival, in order of sending: the host that it is for.
    under_way: BTreeMap<(u64, u64), (usize, SentSegment)>,
    sent: u64,
    state: u64,
    pub(super) badness: Badness,
    pub(super) delay_ns: u64,
    /// The room of each lane.
    pub(super) room: usize,
    /// All segments of both hosts, if they are kept.
    pub(super) log: Option<Vec<(usize, SegmentHeader, usize)>>,
    pub(super) lost: u64,
}

pub(super) fn settings() -> TcpSettings {
    TcpSettings {
        buffer_bytes: 64 << 10,
        mtu: 1500,
        user_timeout_ns: 100 * SECOND_NS,
        keep_alive_ns: None,
    }
}

impl Wire {
    pub(super) fn new(seed: u64, settings: [TcpSettings; 2]) -> Self {
        let host = |at: usize| TcpTable::new(settings[at], FlowSecrets::new([seed, at as u64]));
        let mut hosts = [host(0), host(1)];
        let queue = Arc::new(AcceptQueue::new(1 << 16));
        hosts[0].listen(PORT, Arc::clone(&queue));
        Self {
            now_ns: SECOND_NS,
            hosts,
            queue,
            under_way: BTreeMap::new(),
            sent: 0,
            state: seed,
            badness: Badness::default(),
            delay_ns: 20_000,
            room: 256,
            log: None,
            lost: 0,
        }
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        self.draw() % 1000 < of_thousand
    }

    /// Acts on a host, and carries what it sends.
    pub(super) fn act<R>(
        &mut self,
        host: usize,
        act: impl FnOnce(&mut TcpTable, u64, &mut SentSegments) -> R,
    ) -> R {
        let mut sink = SentSegments {
            sent: Vec::new(),
            room: self.room,
            doubts: 0,
        };
        let result = act(&mut self.hosts[host], self.now_ns, &mut sink);
        for segment in sink.sent {
            self.carry(host, segment);
        }
        result
    }

    fn carry(&mut self, from: usize, segment: SentSegment) {
        if let Some(log) = &mut self.log {
            let (header, payload) = SegmentHeader::parse(&segment.bytes).expect("whole");
            log.push((from, header, payload.len()));
        }
        let Badness {
            lost,
            twice,
            late,
            corrupt,
        } = self.badness;
        // A wrong checksum loses a segment below TCP.
        if self.chance(lost) || self.chance(corrupt) {
            self.lost += 1;
            return;
        }
        if self.chance(twice) {
            self.put(from, segment.clone(), self.delay_ns);
        }
        let delay_ns = if self.chance(late) {
            self.delay_ns + self.draw() % (3 * MILLISECOND_NS)
        } else {
            self.delay_ns
        };
        self.put(from, segment, delay_ns);
    }

    fn put(&mut self, from: usize, segment: SentSegment, delay_ns: u64) {
        self.sent += 1;
        let at = (self.now_ns + delay_ns, self.sent);
        self.under_way.insert(at, (1 - from, segment));
    }

    /// The client's flow with this port.
    pub(super) fn flow(port: u16) -> FlowKey {
        FlowKey {
            local_ip: CLIENT,
            remote_ip: SERVER,
            local_port: port,
            remote_port: PORT,
        }
    }

    pub(super) fn connect(&mut self, port: u16) -> Option<u32> {
        self.act(1, |table, now_ns, sink| {
            table.connect(Self::flow(port), 20 * SECOND_NS, now_ns, sink)
        })
    }

    pub(super) fn accept(&mut self) -> Option<u32> {
        self.queue.pop(Waker::noop()).map(|waiting| waiting.id)
    }

    pub(super) fn write(
        &mut self,
        host: usize,
        id: u32,
        from: &[u8],
    ) -> Option<Result<usize, TcpFailure>> {
        self.act(host, |table, now_ns, sink| {
            table.write(id, from, Waker::noop(), now_ns, sink)
        })
    }

    pub(super) fn read(&mut self, host: usize, id: u32) -> Option<Result<Vec<u8>, TcpFailure>> {
        self.read_up_to(host, id, 100_000)
    }

    pub(super) fn read_up_to(
        &mut self,
        host: usize,
        id: u32,
        most: usize,
    ) -> Option<Result<Vec<u8>, TcpFailure>> {
        let mut buffer = vec![0; most];
        let result = self.act(host, |table, now_ns, sink| {
            table.read(id, &mut buffer, Waker::noop(), now_ns, sink)
        });
        result.map(|result| {
            result.map(|bytes| {
                buffer.truncate(bytes);
                buffer
            })
        })
    }

    pub(super) fn close(&mut self, host: usize, id: u32) {
        self.act(host, |table, now_ns, sink| table.close(id, now_ns, sink));
    }

    pub(super) fn abandon(&mut self, host: usize, id: u32) {
        self.act(host, |table, now_ns, sink| table.abandon(id, now_ns, sink));
    }

    /// Goes on to the next event, at most until a time; returns whether there was one.
    pub(super) fn step(&mut self, until_ns: u64) -> bool {
        let arrival = self.under_way.first_key_value().map(|(at, _)| at.0);
        // A full lane is emptied within 10 µs.
        let due = self.hosts.iter().filter_map(TcpTable::next_ns);
        let due = due.map(|at| at.max(self.now_ns + 10_000)).min();
        let Some(next) = arrival.into_iter().chain(due).min() else {
            self.now_ns = until_ns;
            return false;
        };
        if next > until_ns {
            self.now_ns = until_ns;
            return false;
        }
        self.now_ns = self.now_ns.max(next);
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now_ns
        {
            let (host, segment) = entry.remove();
            self.deliver(host, &segment);
        }
        for host in 0..2 {
            self.act(host, |table, now_ns, sink| table.poll(now_ns, sink));
        }
        true
    }

    /// Gives a host a segment at once.
    pub(super) fn deliver(&mut self, host: usize, segment: &SentSegment) {
        let key = FlowKey {
            local_ip: segment.key.remote_ip,
            remote_ip: segment.key.local_ip,
            local_port: segment.key.remote_port,
            remote_port: segment.key.local_port,
        };
        let (header, payload) = SegmentHeader::parse(&segment.bytes).expect("whole");
        self.act(host, |table, now_ns, sink| {
            table.on_segment(
                (table.flow_hash(&key), &key),
                &header,
                payload,
                now_ns,
                sink,
            );
        });
    }

    pub(super) fn run(&mut self, span_ns: u64) {
        let until_ns = self.now_ns + span_ns;
        while self.step(until_ns) {}
        for host in 0..2 {
            self.act(host, |table, now_ns, sink| table.poll(now_ns, sink));
        }
    }

    /// Loses all that is under way.
    pub(super) fn cut(&mut self) {
        self.under_way.clear();
        self.badness.lost = 1000;
    }

    /// A connection: the ids at the server and the client.
    pub(super) fn connected(&mut self, port: u16) -> (u32, u32) {
        let client = self.connect(port).expect("the flow is free");
        self.run(MILLISECOND_NS);
        (self.accept().expect("it came"), client)
    }
}

/// A segment that a stranger makes up.
pub(super) fn made_up(key: FlowKey, header: SegmentHeader) -> SentSegment {
    let header = SegmentHeader {
        from_port: key.local_port,
        to_port: key.remote_port,
        ..header
    };
    let mut bytes = vec![0; 64];
    let length = header.write(&mut bytes);
    bytes.truncate(length);
    SentSegment { key, bytes }
}

pub(super) fn syn(sequence: u32) -> SegmentHeader {
    SegmentHeader {
        sequence,
        flags: TcpFlags::SYN,
        window: 1000,
        mss: Some(1460),
        ..SegmentHeader::default()
    }
}
