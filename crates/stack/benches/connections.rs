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

fn trips_ns<'a>(mut next: impl FnMut(usize) -> &'a Streams) -> f64 {
    let begun = Instant::now();
    (0..TRIPS).for_each(|number| trip(next(number)));
    begun.elapsed().as_nanos() as f64 / TRIPS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The cost of a round trip: of one connection alone, of one beside many, of many in turn.
fn many(connections: usize) {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server, 80, connections).expect("the port");
    let at = listener.local_addr();
    let (alone_server, alone_client) = pair();
    let alone_listener = TcpListener::bind(&alone_server, 80, 1).expect("the port");
    let alone = open(&alone_client, &alone_listener, at);
    let open: Vec<Streams> = (0..connections)
        .map(|_| open(&client, &listener, at))
        .collect();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(trips_ns(|_| &alone));
        times[1].push(trips_ns(|_| &open[0]));
        times[2].push(trips_ns(|number| &open[number % open.len()]));
    }
    let [alone, beside, turn] = times.map(median);
    println!("a round trip of one connection: {alone:.0} ns");
    println!(
        "beside {connections} others: {beside:.0} ns, {:.2} of it",
        beside / alone
    );
    println!(
        "of {connections} connections in turn: {turn:.0} ns, {:.2} of it",
        turn / alone
    );
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
