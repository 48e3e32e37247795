//! The same segments to this stack and to Linux, in the manner of packetdrill: what RFCs fix of their answers is the same.
//!
//! A script is run on either. Its lines are those of a peer: `< FLAGS seq:end [ack n] [win n] [sack a:b] [ts n] [mss] [scale]` sends a segment, the others are
//! calls of the application. Numbers count from each side's SYN. After each line, all that comes within a moment is its answer, without what came before
//! already: timeouts differ.

use crate::bad_network::LinkEnd as _;
use crate::bad_wire::PacketSocket;
use crate::in_namespaces;
use crate::net::{Host, enter_namespace, host_mac, shell, switch_mac};
use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use headway_stack::tcp::segment::{SackBlocks, SegmentHeader, TcpFlags, Timestamps};
use headway_stack::{NetStack, OsThreads, StackConfig, TcpListener, TcpStream};
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The scripts' side of the device, and the host under test.
const PROBER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const TESTED: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const NUMBER: u8 = 2;
const PORT: u16 = 80;
const CLOSED_PORT: u16 = 81;
/// The scripts' SYN: numbers wrap soon.
const THEIR_FIRST: u32 = 0xFFFF_FF00;
/// The silence after which an answer is complete: Linux delays acknowledgements by 40 ms.
const SILENCE: Duration = Duration::from_millis(70);
/// Looks in vain after that silence: who got no processor for so long has not looked yet.
const LAST_LOOKS: usize = 5;
const ETHERNET_AND_IP: usize = 34;

/// A call of the application.
#[derive(Debug, Clone, Copy)]
enum AppCall {
    Accept,
    Write(usize),
    Read(usize),
    /// Ends writing.
    Close,
}

/// A host with an application that listens at [`PORT`].
trait TestedHost {
    fn put(&mut self, frame: &[u8]);
    fn next(&mut self) -> Option<Vec<u8>>;
    /// Whether it was done: there may be no connection to accept.
    fn call(&mut self, call: AppCall) -> bool;
}

struct Linux {
    device: PacketSocket,
    calls: Sender<AppCall>,
    done: Receiver<bool>,
}

/// Linux's application.
fn serve(calls: &Receiver<AppCall>, done: &Sender<bool>) {
    let listener = std::net::TcpListener::bind((TESTED, PORT)).expect("the port");
    listener.set_nonblocking(true).expect("an option");
    let mut stream = None;
    let mut buffer = vec![0; 1 << 16];
    done.send(true).expect("the test waits");
    for call in calls {
        let mut is_done = true;
        let open = || stream.as_ref().expect("accepted");
        match call {
            AppCall::Accept => {
                let accepted = listener.accept().ok().map(|(accepted, _)| accepted);
                if let Some(stream) = &accepted {
                    stream.set_nonblocking(false).expect("an option");
                    stream.set_nodelay(true).expect("an option");
                }
                is_done = accepted.is_some();
                stream = accepted;
            }
            AppCall::Write(bytes) => {
                let mut stream: &std::net::TcpStream = open();
                stream.write_all(&buffer[..bytes]).expect("room");
            }
            AppCall::Read(bytes) => {
                let mut stream: &std::net::TcpStream = open();
                stream.read_exact(&mut buffer[..bytes]).expect("it came");
            }
            AppCall::Close => open().shutdown(Shutdown::Write).expect("open"),
        }
        done.send(is_done).expect("the test waits");
    }
}

impl TestedHost for Linux {
    fn put(&mut self, frame: &[u8]) {
        self.device.put(frame);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        self.device.next()
    }

    fn call(&mut self, call: AppCall) -> bool {
        self.calls.send(call).expect("Linux is there");
        let done = self.done.recv_timeout(Duration::from_secs(20));
        done.unwrap_or_else(|_| panic!("Linux does not return from {call:?}"))
    }
}

struct Own {
    stack: Arc<NetStack<OsThreads>>,
    network: LaneEnds,
    listener: TcpListener<OsThreads>,
    stream: Option<TcpStream<OsThreads>>,
}

impl Own {
    fn new() -> Self {
        let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
        let network = LaneEnds::of_plane(&memory, 0).expect("it fits");
        let lane = LaneEnds::of_application(&memory, 0).expect("it fits");
        let config = StackConfig::new(host_mac(NUMBER), TESTED, 24, [7, 8]);
        let stack = NetStack::new(&config, vec![lane], OsThreads);
        let listener = TcpListener::bind(&stack, PORT, 16).expect("the port");
        let mut own = Self {
            stack,
            network,
            listener,
            stream: None,
        };
        own.put(&arp_request());
        own
    }
}

impl TestedHost for Own {
    fn put(&mut self, frame: &[u8]) {
        assert!(self.network.sender.send(frame) == Ok(true), "room");
        self.stack.poll();
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        self.stack.poll();
        let mut buffer = [0; MOST_PACKET_BYTES];
        let Ok(Taken::Packet(length)) = self.network.receiver.receive(&mut buffer) else {
            return None;
        };
        if buffer[12..14] == [8, 6] && buffer[21] == 1 {
            // It asks whether the scripts' side is there: their FINs are never acknowledged.
            self.put(&arp_request());
        }
        Some(buffer[..length].to_vec())
    }

    fn call(&mut self, call: AppCall) -> bool {
        let waker = Waker::noop();
        let open = || self.stream.as_ref().expect("accepted");
        match call {
            AppCall::Accept => {
                self.stream = self.listener.accept_or_wait(waker);
                return self.stream.is_some();
            }
            AppCall::Write(bytes) => {
                let written = open().send_or_wait(&vec![0; bytes], waker);
                assert_eq!(written.expect("room").expect("open"), bytes);
            }
            AppCall::Read(bytes) => {
                let mut buffer = vec![0; bytes];
                let read = open().receive_or_wait(&mut buffer, waker);
                assert_eq!(read.expect("it came").expect("open"), bytes);
            }
            AppCall::Close => open().shutdown(Shutdown::Write),
        }
        true
    }
}

/// What RFCs fix of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    flags: u8,
    first: u32,
    bytes: usize,
    acknowledgement: Option<u32>,
    /// The first block of a selective acknowledgement; duplicates (RFC 2883) are not said by both.
    sack: Option<(u32, u32)>,
    /// Of a SYN: segment size, whether it scales, and takes selective acknowledgements.
    syn: Option<(Option<u16>, bool, bool)>,
    echo: Option<u32>,
}

impl Answer {
    fn is_bare_acknowledgement(&self) -> bool {
        self.flags == TcpFlags::ACK.0 && self.bytes == 0
    }
}

fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend(switch_mac(NUMBER));
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(switch_mac(NUMBER));
    frame.extend(PROBER.octets());
    frame.extend([0; 6]);
    frame.extend(TESTED.octets());
    frame
}

fn checksum(bytes: &[u8], begun: u32) -> [u8; 2] {
    let words = bytes.chunks(2);
    let words =
        words.map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum = begun + words.sum::<u32>();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A frame with a segment of the prober.
fn frame(header: &SegmentHeader, payload: usize) -> Vec<u8> {
    let mut segment = [0; 60];
    let length = header.write(&mut segment);
    let mut segment = segment[..length].to_vec();
    segment.resize(length + payload, 0);
    let addresses: Vec<u8> = [PROBER.octets(), TESTED.octets()].concat();
    let pseudo = addresses
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let pseudo = pseudo.sum::<u32>() + 6 + segment.len() as u32;
    let sum = checksum(&segment, pseudo);
    segment[16..18].copy_from_slice(&sum);
    let total = (20 + segment.len() as u16).to_be_bytes();
    let mut ip = vec![0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(addresses);
    let sum = checksum(&ip, 0);
    ip[10..12].copy_from_slice(&sum);
    let ethernet = [&host_mac(NUMBER)[..], &switch_mac(NUMBER), &[8, 0]].concat();
    [ethernet, ip, segment].concat()
}

/// What became of a line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineAnswers {
    line: String,
    is_done: bool,
    answers: Vec<Answer>,
}

/// A connection of the prober to a host.
struct ScriptedPeer<'a> {
    host: &'a mut dyn TestedHost,
    port: u16,
    to_port: u16,
    our_first: Option<u32>,
    /// The latest timestamp of the host.
    echo: u32,
    /// The end of the data that came.
    their_end: u32,
    /// Flags, position and length of segments that came.
    seen: HashSet<(u8, u32, usize)>,
}

impl<'a> ScriptedPeer<'a> {
    fn new(host: &'a mut dyn TestedHost, port: u16, to_port: u16) -> Self {
        Self {
            host,
            port,
            to_port,
            our_first: None,
            echo: 0,
            their_end: 0,
            seen: HashSet::new(),
        }
    }

    /// The next segment of the host on this connection.
    fn next(&mut self) -> Option<Answer> {
        while let Some(frame) = self.host.next() {
            let is_tcp = frame.get(12..14) == Some(&[8, 0]) && frame[23] == 6;
            if !is_tcp {
                continue;
            }
            let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            let segment = SegmentHeader::parse(&frame[ETHERNET_AND_IP..end]);
            let (header, payload) = segment.expect("whole");
            if header.to_port != self.port {
                continue;
            }
            return Some(self.understood(&header, payload.len()));
        }
        None
    }

    fn understood(&mut self, header: &SegmentHeader, bytes: usize) -> Answer {
        let flags = TcpFlags(header.flags.0 & !TcpFlags::PSH.0);
        if flags.has(TcpFlags::SYN) {
            self.our_first = Some(header.sequence);
        }
        if let Some(timestamps) = header.timestamps {
            self.echo = timestamps.value;
        }
        let of = |number: u32| number.wrapping_sub(THEIR_FIRST);
        let blocks = header.sack.as_slice().iter();
        let mut ahead =
            blocks.filter(|block| block.0.wrapping_sub(header.acknowledgement) as i32 > 0);
        Answer {
            flags: flags.0,
            first: header.sequence.wrapping_sub(self.our_first.unwrap_or(0)),
            bytes,
            acknowledgement: flags.has(TcpFlags::ACK).then(|| of(header.acknowledgement)),
            sack: ahead.next().map(|block| (of(block.0), of(block.1))),
            syn: flags.has(TcpFlags::SYN).then_some((
                header.mss,
                header.window_scale.is_some(),
                header.sack_permitted,
            )),
            echo: header.timestamps.map(|timestamps| timestamps.echo),
        }
    }

    /// All that comes until it is silent: the last of several bare acknowledgements in a row, and nothing twice.
    fn answers(&mut self) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        let (mut heard, mut last_looks) = (Instant::now(), 0);
        while last_looks < LAST_LOOKS {
            let Some(answer) = self.next() else {
                last_looks += usize::from(heard.elapsed() >= SILENCE);
                std::thread::sleep(Duration::from_micros(200));
                continue;
            };
            let is_probe = answer.first < self.their_end;
            self.their_end = self.their_end.max(answer.first + answer.bytes as u32);
            if answer.is_bare_acknowledgement() && !is_probe {
                if answers.last().is_some_and(Answer::is_bare_acknowledgement) {
                    answers.pop();
                }
                answers.push(answer);
            } else if self.seen.insert((answer.flags, answer.first, answer.bytes)) {
                answers.push(answer);
            } else {
                // A retransmission or a probe, of which there is no end.
                continue;
            }
            (heard, last_looks) = (Instant::now(), 0);
        }
        answers
    }

    fn send(&mut self, words: &[&str]) {
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1).copied()
        };
        let number = |word: &str| word.parse::<u32>().expect("a number");
        let range = |word: &str| {
            let (first, end) = word.split_once(':').expect("a range");
            (number(first), number(end))
        };
        let flag = |letter| match letter {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            '.' => TcpFlags::ACK,
            '_' => TcpFlags::default(),
            other => panic!("{other} is no flag"),
        };
        let (first, end) = range(words[1]);
        let own = |number: u32| self.our_first.unwrap_or(0).wrapping_add(number);
        let mut sack = SackBlocks::default();
        if let Some((first, end)) = after("sack").map(range) {
            sack.push(own(first), own(end));
        }
        let flags = words[0].chars().map(flag);
        let header = SegmentHeader {
            from_port: self.port,
            to_port: self.to_port,
            sequence: THEIR_FIRST.wrapping_add(first),
            acknowledgement: after("ack").map_or(0, |word| own(number(word))),
            flags: flags.fold(TcpFlags::default(), TcpFlags::with),
            window: after("win").map_or(60_000, |word| number(word) as u16),
            mss: words.contains(&"mss").then_some(1000),
            window_scale: words.contains(&"scale").then_some(0),
            sack_permitted: words.contains(&"sacks"),
            timestamps: after("ts").map(|word| Timestamps {
                value: number(word),
                echo: self.echo,
            }),
            sack,
        };
        self.host.put(&frame(&header, (end - first) as usize));
    }

    /// Runs a script; returns the answers to each line.
    fn run(&mut self, script: &str) -> Vec<LineAnswers> {
        let lines = script.lines().map(str::trim);
        let mut all = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = || words[1].parse::<usize>().expect("a number");
            let mut is_done = true;
            match words[0] {
                "<" => self.send(&words[1..]),
                "accept" => is_done = self.host.call(AppCall::Accept),
                "write" => is_done = self.host.call(AppCall::Write(number())),
                "read" => is_done = self.host.call(AppCall::Read(number())),
                "close" => is_done = self.host.call(AppCall::Close),
                "wait" => std::thread::sleep(Duration::from_millis(number() as u64)),
                other => panic!("{other} is no line of a script"),
            }
            all.push(LineAnswers {
                line: line.to_owned(),
                is_done,
                answers: self.answers(),
            });
            if !is_done {
                break;
            }
        }
        all
    }
}

/// Linux behind the device `p2` of this thread's new namespace, and its application.
fn linux() -> (Linux, Host<()>) {
    enter_namespace();
    let (calls, to_do) = channel();
    let (tell, done) = channel();
    let host = Host::start(NUMBER, move || serve(&to_do, &tell));
    let wire = host.wire();
    let inside = format!(
        "nsenter --net=/proc/{}/task/{}/ns/net",
        std::process::id(),
        host.task()
    );
    shell(&format!(
        "ethtool -K {wire} tx off gro off
         {inside} ethtool -K e0 tx off tso off gso off gro off
         {inside} sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_early_retrans'"
    ));
    let device = PacketSocket::open(&wire).expect("root");
    host.begin();
    let seconds = Duration::from_secs(20);
    done.recv_timeout(seconds).expect("Linux listens");
    (
        Linux {
            device,
            calls,
            done,
        },
        host,
    )
}

/// The answers to each script, by its name.
fn run_all(host: &mut dyn TestedHost) -> Vec<(&'static str, Vec<LineAnswers>)> {
    let scripts = include_str!("beside_linux.txt").split("# ").skip(1);
    let run = |(at, script): (usize, &'static str)| {
        let (name, lines) = script.split_once('\n').expect("a name and lines");
        let to_port = if name.contains("nobody listens") {
            CLOSED_PORT
        } else {
            PORT
        };
        let mut peer = ScriptedPeer::new(&mut *host, 40_000 + at as u16, to_port);
        (name, peer.run(lines))
    };
    scripts.enumerate().map(run).collect()
}

#[test]
fn this_stack_answers_segments_as_linux_does() {
    in_namespaces("segments to Linux and to this stack", || {
        let (mut linux, host) = linux();
        let own = std::thread::spawn(|| run_all(&mut Own::new()));
        let theirs = run_all(&mut linux);
        let own = own.join().expect("it runs");
        drop(linux);
        host.end();
        let mut differing = String::new();
        for ((name, theirs), (_, own)) in theirs.iter().zip(&own) {
            if let Some(at) =
                (0..theirs.len().max(own.len())).find(|at| theirs.get(*at) != own.get(*at))
            {
                let (theirs, own) = (theirs.get(at), own.get(at));
                differing += &format!("{name}:\n  Linux {theirs:?}\n  own   {own:?}\n");
            }
        }
        assert!(differing.is_empty(), "{differing}");
        assert!(
            theirs
                .iter()
                .all(|(_, lines)| lines.iter().any(|line| !line.answers.is_empty()))
        );
    });
}

/// The times at which a segment that nobody acknowledges comes.
fn retransmissions(host: &mut dyn TestedHost) -> Vec<(Duration, Answer)> {
    const COPIES: usize = 6;
    let mut peer = ScriptedPeer::new(host, 50_000, PORT);
    peer.run("< S 0:0 mss sacks\n< . 1:1 ack 1\naccept");
    peer.host.call(AppCall::Write(100));
    let begun = Instant::now();
    let mut copies = Vec::new();
    while copies.len() < COPIES && begun.elapsed() < Duration::from_secs(60) {
        match peer.next() {
            Some(answer) => copies.push((begun.elapsed(), answer)),
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
    copies
}

#[test]
fn timeouts_double_here_and_in_linux_and_the_same_segment_goes() {
    in_namespaces("timeouts of Linux and of this stack", || {
        let (mut theirs, host) = linux();
        let all = [
            retransmissions(&mut theirs),
            retransmissions(&mut Own::new()),
        ];
        drop(theirs);
        host.end();
        for copies in &all {
            assert_eq!(copies.len(), 6, "{copies:?}");
            assert!(
                copies.iter().all(|copy| copy.1 == copies[0].1),
                "{copies:?}"
            );
            let spans: Vec<f64> = copies
                .windows(2)
                .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64())
                .collect();
            // The first timeout starts where the host was interrupted.
            for pair in spans[1..].windows(2) {
                let growth = pair[1] / pair[0];
                assert!((1.3..3.0).contains(&growth), "{spans:?}");
            }
        }
        assert_eq!(all[0][0].1, all[1][0].1);
    });
}
