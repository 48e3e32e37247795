//! What TCP costs, in memory: two stacks back to back on one thread, each with its lanes, so that a core does the work of both sides and of nothing else.
//!
//! It prints the cost of a round trip on one connection beside many idle ones, and over many that are used in turn; the rate of short connections; and of
//! SYNs that nobody completes. Figures of one kind are taken in turn, and the ratios are of medians. `cargo bench -p headway-stack --bench connections`; the
//! number of connections may follow `--`.

use headway_rings::lane::{LANE_BYTES, LaneEnds};
use headway_rings::mapping::SharedMapping;
use headway_stack::{NetStack, StackConfig, TcpListener, TcpStream, ThreadParking};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const TRIPS: usize = 20_000;
const SHORT: usize = 10_000;

/// A thread that waits for one stack polls the other.
#[derive(Clone, Default)]
struct PollsPeer(Arc<OnceLock<Weak<NetStack<PollsPeer>>>>);

impl ThreadParking for PollsPeer {
    type Section = ();

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }

    fn park(&self, _: Option<Duration>) {
        if let Some(peer) = self.0.get().and_then(Weak::upgrade) {
            peer.poll();
        }
    }

    fn enter_section(&self) {}

    fn kthread(&self) -> usize {
        0
    }

    fn is_polled_after(&self) -> bool {
        true
    }
}

type Stack = Arc<NetStack<PollsPeer>>;

fn pair() -> (Stack, Stack) {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let lanes = [
        LaneEnds::of_plane(&memory, 0).expect("it fits"),
        LaneEnds::of_application(&memory, 0).expect("it fits"),
    ];
    let threads = [PollsPeer::default(), PollsPeer::default()];
    let mut hosts = lanes.into_iter().enumerate().map(|(at, lane)| {
        let host = at as u8 + 1;
        let ip = Ipv4Addr::new(10, 0, 0, host);
        let config = StackConfig::new([2, 0, 0, 0, 9, host], ip, 24, [7, u64::from(host)]);
        NetStack::new(&config, vec![lane], threads[at].clone())
    });
    let (server, client) = (hosts.next().expect("two"), hosts.next().expect("two"));
    let _ = threads[0].0.set(Arc::downgrade(&client));
    let _ = threads[1].0.set(Arc::downgrade(&server));
    (server, client)
}

type Streams = (TcpStream<PollsPeer>, TcpStream<PollsPeer>);

fn open(client: &Stack, listener: &TcpListener<PollsPeer>, at: SocketAddr) -> Streams {
    let stream = TcpStream::connect(client, at, Duration::from_secs(20)).expect("connected");
    (stream, listener.accept().expect("a connection"))
}

fn trip((client, server): &Streams) {
    let mut buffer = [0; 64];
    client.send(&[7; 64]).expect("written");
    let bytes = server.receive(&mut buffer).expect("a question");
    server.send(&buffer[..bytes]).expect("written");
    assert_eq!(client.receive(&mut buffer).expect("an answer"), 64);
}

/// The cost of a round trip, and of each of its packets: an acknowledgement that no answer carries is one more.
fn trips_ns<'a>(
    (server, client): &(Stack, Stack),
    mut next: impl FnMut(usize) -> &'a Streams,
) -> [f64; 2] {
    let sent = || server.counts().sent + client.counts().sent;
    let (begun, before) = (Instant::now(), sent());
    (0..TRIPS).for_each(|number| trip(next(number)));
    let took_ns = begun.elapsed().as_nanos() as f64;
    [TRIPS as u64, sent() - before].map(|count| took_ns / count as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The medians of round trips and of packets.
fn medians(times: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|which| median(times.iter().map(|one| one[which]).collect()))
}

/// The cost of a round trip: of one connection alone, of one beside many, of many in turn.
fn many(connections: usize) {
    let stacks = pair();
    let listener = TcpListener::bind(&stacks.0, 80, connections).expect("the port");
    let at = listener.local_addr();
    let alone_stacks = pair();
    let alone_listener = TcpListener::bind(&alone_stacks.0, 80, 1).expect("the port");
    let alone = open(&alone_stacks.1, &alone_listener, at);
    let open: Vec<Streams> = (0..connections)
        .map(|_| open(&stacks.1, &listener, at))
        .collect();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(trips_ns(&alone_stacks, |_| &alone));
        times[1].push(trips_ns(&stacks, |_| &open[0]));
        times[2].push(trips_ns(&stacks, |number| &open[number % open.len()]));
    }
    let [alone, beside, turn] = times.map(|times| medians(&times));
    let print = |what: String, [trip, packet]: [f64; 2]| {
        println!(
            "{what}: a round trip {trip:.0} ns, {:.2} of one connection's; a packet {packet:.0} ns, {:.2}",
            trip / alone[0],
            packet / alone[1]
        );
    };
    print("one connection".into(), alone);
    print(format!("one beside {connections} others"), beside);
    print(format!("{connections} in turn"), turn);
}

/// Connections with a question and an answer each, one after the other.
fn short() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server, 80, 16).expect("the port");
    let at = listener.local_addr();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..SHORT {
            let streams = open(&client, &listener, at);
            trip(&streams);
            let (client, server) = streams;
            drop(server);
            drop(client);
        }
        rates.push(SHORT as f64 / begun.elapsed().as_secs_f64());
    }
    let (first, last) = (rates[0], rates[ROUNDS - 1]);
    client.poll();
    server.poll();
    println!(
        "short connections: {:.0}/s, both sides on one core; the first {SHORT} at {first:.0}/s, the last at {last:.0}/s; open and in TIME-WAIT after it: {:?}",
        median(rates),
        server.connections()
    );
}

fn main() {
    let told = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    many(told.unwrap_or(10_000));
    short();
}
