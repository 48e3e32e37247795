//! Exchanges, segment by segment, as packetdrill writes them: `<` is a segment that comes, `>` one that must go, `.` an acknowledgement. Numbers count from each
//! side's SYN.

use std::sync::Arc;
use std::task::Waker;

use super::wire::{PORT, SentSegment, SentSegments, Wire, made_up, settings};
use crate::tcp::flow::{FlowKey, FlowSecrets};
use crate::tcp::listening::AcceptQueue;
use crate::tcp::segment::{SegmentHeader, TcpFlags};
use crate::tcp::table::TcpTable;
use crate::tcp::time::{MILLISECOND_NS, SECOND_NS};

/// The client's SYN.
const THEIR_FIRST: u32 = 0xFFFF_FF00;

/// A server, and the script of its client.
struct ScriptStage {
    table: TcpTable,
    queue: Arc<AcceptQueue>,
    sink: SentSegments,
    now_ns: u64,
    our_first: u32,
    id: Option<u32>,
}

impl ScriptStage {
    fn new() -> Self {
        let mut table = TcpTable::new(settings(), FlowSecrets::new([1, 2]));
        let queue = Arc::new(AcceptQueue::new(8));
        table.listen(PORT, Arc::clone(&queue));
        Self {
            table,
            queue,
            sink: SentSegments {
                sent: Vec::new(),
                room: 1000,
                doubts: 0,
            },
            now_ns: SECOND_NS,
            our_first: 0,
            id: None,
        }
    }

    /// Runs a script: a line is `+ms`, `write n`, `read n`, `close`, `doubts n` (how often the way to the peer was doubted), `< FLAGS seq:end ack n [win n]`, or
    /// `> FLAGS seq:end ack n [sack a:b]`.
    fn run(mut self, script: &str) {
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<usize>().expect("a number");
            match words[0] {
                "<" => self.comes(&words[1..]),
                ">" => self.goes(&words[1..], line),
                "accept" => self.id = self.queue.pop(Waker::noop()).map(|waiting| waiting.id),
                "write" => self.write(number(1)),
                "read" => self.read(number(1), line),
                "doubts" => assert_eq!(self.sink.doubts, number(1), "{line}"),
                "close" => {
                    let id = self.id.expect("accepted");
                    self.table.close(id, self.now_ns, &mut self.sink);
                }
                span => {
                    let span: u64 = span.trim_start_matches('+').parse().expect("a time");
                    self.now_ns += span * MILLISECOND_NS;
                    self.table.poll(self.now_ns, &mut self.sink);
                }
            }
        }
        assert!(self.sink.sent.is_empty(), "more went: {:?}", self.sink.sent);
    }

    fn write(&mut self, bytes: usize) {
        let id = self.id.expect("accepted");
        let data = vec![0; bytes];
        let written = self
            .table
            .write(id, &data, Waker::noop(), self.now_ns, &mut self.sink);
        assert_eq!(written, Some(Ok(bytes)));
    }

    fn read(&mut self, bytes: usize, line: &str) {
        let id = self.id.expect("accepted");
        let mut buffer = vec![0; 100_000];
        let read = self
            .table
            .read(id, &mut buffer, Waker::noop(), self.now_ns, &mut self.sink);
        assert_eq!(read, Some(Ok(bytes)), "{line}");
    }

    fn comes(&mut self, words: &[&str]) {
        let said = ScriptSegment::parse(words);
        let header = SegmentHeader {
            sequence: THEIR_FIRST.wrapping_add(said.first),
            acknowledgement: self.our_first.wrapping_add(said.acknowledgement),
            flags: said.flags,
            window: said.window,
            mss: said.flags.has(TcpFlags::SYN).then_some(1000),
            sack_permitted: said.flags.has(TcpFlags::SYN),
            sack: {
                let mut blocks = crate::tcp::segment::SackBlocks::default();
                if let Some((first, end)) = said.sack {
                    let of = |number| self.our_first.wrapping_add(number);
                    blocks.push(of(first), of(end));
                }
                blocks
            },
            ..SegmentHeader::default()
        };
        let SentSegment { mut bytes, .. } = made_up(Wire::flow(50_000), header);
        bytes.resize(bytes.len() + said.bytes(), 7);
        let (header, payload) = SegmentHeader::parse(&bytes).expect("whole");
        let key = Wire::flow(50_000);
        let key = FlowKey {
            local_ip: key.remote_ip,
            remote_ip: key.local_ip,
            local_port: key.remote_port,
            remote_port: key.local_port,
        };
        self.table.on_segment(
            (self.table.flow_hash(&key), &key),
            &header,
            payload,
            self.now_ns,
            &mut self.sink,
        );
    }

    fn goes(&mut self, words: &[&str], line: &str) {
        assert!(!self.sink.sent.is_empty(), "nothing went: {line}");
        let sent = self.sink.sent.remove(0);
        let header = sent.header();
        let said = ScriptSegment::parse(words);
        if header.flags.has(TcpFlags::SYN) {
            self.our_first = header.sequence;
        }
        let push = TcpFlags(header.flags.0 & !TcpFlags::PSH.0);
        assert_eq!(push, said.flags, "{line}: {header:?}");
        let first = header.sequence.wrapping_sub(self.our_first);
        let length = SegmentHeader::parse(&sent.bytes).expect("whole").1.len();
        assert_eq!((first, length), (said.first, said.bytes()), "{line}");
        if said.flags.has(TcpFlags::ACK) {
            let acknowledged = header.acknowledgement.wrapping_sub(THEIR_FIRST);
            assert_eq!(acknowledged, said.acknowledgement, "{line}");
        }
        if let Some((first, end)) = said.sack {
            let of = |number| THEIR_FIRST.wrapping_add(number);
            assert_eq!(
                header.sack.as_slice().first(),
                Some(&(of(first), of(end))),
                "{line}"
            );
        }
    }
}

/// A segment as a script says it.
struct ScriptSegment {
    flags: TcpFlags,
    first: u32,
    end: u32,
    acknowledgement: u32,
    window: u16,
    sack: Option<(u32, u32)>,
}

impl ScriptSegment {
    fn parse(words: &[&str]) -> Self {
        let flag = |letter| match letter {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            '.' => TcpFlags::ACK,
            other => panic!("{other} is no flag"),
        };
        let flags = words[0].chars().map(flag);
        let range = |word: &str| {
            let (first, end) = word.split_once(':').expect("a range");
            let number = |word: &str| word.parse::<u32>().expect("a number");
            (number(first), number(end))
        };
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            Some(words[at + 1])
        };
        let number = |name: &str| after(name).map(|word| word.parse::<u32>().expect("a number"));
        let (first, end) = range(words[1]);
        Self {
            flags: flags.fold(TcpFlags::default(), TcpFlags::with),
            first,
            end,
            acknowledgement: number("ack").unwrap_or(0),
            window: number("win").unwrap_or(60_000) as u16,
            sack: after("sack").map(range),
        }
    }

    fn bytes(&self) -> usize {
        (self.end - self.first) as usize
    }
}

const HANDSHAKE: &str = "
    < S 0:0
    > S. 0:0 ack 1
    < . 1:1 ack 1
    accept
";

fn run(script: &str) {
    ScriptStage::new().run(&format!("{HANDSHAKE}{script}"));
}

#[test]
fn an_acknowledgement_is_delayed_for_a_millisecond_or_rides_on_an_answer() {
    run("
        < . 1:101 ack 1
        +2
        > . 1:1 ack 101
        < . 101:201 ack 1
        read 200
        write 50
        > . 1:51 ack 201
        < . 201:201 ack 51
        +10
    ");
}

#[test]
fn every_second_segment_is_acknowledged_at_once() {
    run("
        < . 1:1001 ack 1
        < . 1001:2001 ack 1
        > . 1:1 ack 2001
    ");
}

#[test]
fn data_out_of_order_is_acknowledged_at_once_and_selectively() {
    run("
        < . 1001:2001 ack 1
        > . 1:1 ack 1 sack 1001:2001
        < . 3001:4001 ack 1
        > . 1:1 ack 1 sack 3001:4001
        < . 1:1001 ack 1
        > . 1:1 ack 2001 sack 3001:4001
        < . 2001:3001 ack 1
        > . 1:1 ack 4001
        read 4000
    ");
}

#[test]
fn three_duplicates_bring_the_lost_segment_and_a_partial_acknowledgement_the_next() {
    run("
        write 6000
        > . 1:1001 ack 1
        > . 1001:2001 ack 1
        > . 2001:3001 ack 1
        > . 3001:4001 ack 1
        > . 4001:5001 ack 1
        > . 5001:6001 ack 1
        < . 1:1 ack 1 sack 1001:2001
        < . 1:1 ack 1 sack 1001:3001
        < . 1:1 ack 1 sack 1001:4001
        > . 1:1001 ack 1
        < . 1:1 ack 6001
    ");
}

#[test]
fn a_timeout_of_5_ms_brings_the_first_segment_and_doubles() {
    run("
        write 100
        > . 1:101 ack 1
        < . 1:1 ack 101
        write 100
        > . 101:201 ack 1
        +6
        > . 101:201 ack 1
        +6
        +5
        > . 101:201 ack 1
        < . 1:1 ack 201
        +100
    ");
}

#[test]
fn the_way_is_doubted_after_two_timeouts_in_succession_and_not_after_one() {
    run("
        write 100
        > . 1:101 ack 1
        +110
        > . 1:101 ack 1
        < . 1:1 ack 101
        write 100
        > . 101:201 ack 1
        +110
        > . 101:201 ack 1
        doubts 0
        +210
        > . 101:201 ack 1
        doubts 1
    ");
}

#[test]
fn a_shut_window_is_probed_and_its_opening_used() {
    run("
        write 2000
        > . 1:1001 ack 1
        > . 1001:2001 ack 1
        < . 1:1 ack 2001 win 0
        write 500
        +200
        > . 2000:2000 ack 1
        < . 1:1 ack 2001 win 1000
        > . 2001:2501 ack 1
        < . 1:1 ack 2501
    ");
}

#[test]
fn both_ends_close_and_the_last_fin_is_acknowledged_again() {
    run("
        close
        > F. 1:1 ack 1
        < . 1:1 ack 2
        < F. 1:1 ack 2
        > . 2:2 ack 2
        < F. 1:1 ack 2
        > . 2:2 ack 2
    ");
}

#[test]
fn the_peer_closes_first() {
    run("
        < F. 1:11 ack 1
        > . 1:1 ack 12
        read 10
        read 0
        write 20
        > . 1:21 ack 12
        close
        > F. 21:21 ack 12
        < . 12:12 ack 22
        < . 12:12 ack 22
        > R 22:22
    ");
}

#[test]
fn a_reset_in_the_window_is_questioned_and_the_exact_one_counts() {
    run("
        < R 100:100
        > . 1:1 ack 1
        < R 1:1
        < . 1:1 ack 1
        > R 1:1
    ");
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_answered_and_ignored() {
    run("
        < . 1:101 ack 5000
        > . 1:1 ack 1
    ");
}

#[test]
fn a_fin_beyond_a_shut_window_waits_for_a_peer_that_answers_and_a_reset_goes_to_the_edge() {
    run("
        write 100
        > . 1:101 ack 1
        < . 1:1 ack 101 win 0
        close
        > F. 101:101 ack 1
        +60000
        > F. 101:101 ack 1
        < . 1:1 ack 101 win 0
        +60000
        > F. 101:101 ack 1
        +100001
        > R. 101:101 ack 1
    ");
}
