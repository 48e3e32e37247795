//! The service under every live policy: a SCAN that is interrupted, and goes on in another thread, sees what a map would show it.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headway_kv::{Checksum, Kv, Operation, Request, key_of, read_get, read_scan};
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_policy::server::systems::{ALL, ServerSpec};
use headway_runtime::{
    Admission, Builder, Call, DeclaredClass, Layout, Server, Service, admit, server_shape,
};
use nix::unistd::{Pid, gettid};

const KEYS: u64 = 3_000;
const WORKERS: usize = 2;
/// Clients, so that a network that steers by flow reaches every worker.
const CLIENTS: usize = 4;
/// Rounds that each server serves at least.
const ROUNDS: u64 = 6;
/// Writes in a round. A SCAN beside them has seen any of them or not.
const WRITES: u64 = 4;
const GETS: u64 = 8;
const FOREVER: Duration = Duration::from_secs(60);

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// A key, and its value after the write; `None` after a DELETE.
type Write = (Vec<u8>, Option<Vec<u8>>);

/// The service, and how many requests ended in another thread than the one they began in.
#[derive(Clone)]
struct Watched {
    kv: Kv,
    moved: Arc<AtomicU64>,
}

/// The thread, asked anew each time.
#[inline(never)]
fn this_thread() -> Pid {
    gettid()
}

impl Service for Watched {
    fn handle(&self, call: &mut Call<'_>) {
        let begun = this_thread();
        self.kv.handle(call);
        if this_thread() != begun {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The classes by the numbers of their operations.
fn classes() -> [DeclaredClass; 4] {
    let operations = [
        ("GET", 2_000),
        ("SCAN", 500_000),
        ("PUT", 5_000),
        ("DELETE", 5_000),
    ];
    operations.map(|(name, mean_ns)| DeclaredClass::new(name, Duration::from_nanos(mean_ns)))
}

fn start(spec: &ServerSpec, admission: Admission, layout: Layout, watched: Watched) -> Server {
    let mut builder: Builder = Server::builder()
        .policy_spec(spec.clone())
        .classes(classes().to_vec())
        .workers(WORKERS)
        .layout(layout);
    if admission.polls_at_work(layout == Layout::Dedicated) {
        builder = builder.look_every(Duration::from_micros(2));
    }
    let server = builder
        .service(watched)
        .listen_udp("127.0.0.1:0".parse().unwrap());
    server
        .start()
        .unwrap_or_else(|error| panic!("{spec}, {layout:?}: {error}"))
}

/// Sends requests, and receives the replies to all of them.
struct Client {
    sockets: Vec<UdpSocket>,
    sent: u32,
}

impl Client {
    fn of(server: &Server) -> Self {
        let connected = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(server.local_addr().unwrap()).unwrap();
            socket.set_read_timeout(Some(FOREVER)).unwrap();
            socket
        };
        let sockets = (0..CLIENTS).map(|_| connected()).collect();
        Self { sockets, sent: 0 }
    }

    fn send(&mut self, operation: Operation, request: Request<'_>) {
        let header = Header {
            class: operation as u8,
            flag: Flag::REQUEST,
            index: self.sent,
            time_ns: 0,
        };
        let mut datagram = [0; 512];
        datagram[..HEADER_BYTES].copy_from_slice(&header.encode());
        let len = request.encode(&mut datagram[HEADER_BYTES..]).unwrap();
        let socket = &self.sockets[self.sent as usize % CLIENTS];
        socket.send(&datagram[..HEADER_BYTES + len]).unwrap();
        self.sent += 1;
    }

    /// The bodies of the replies, in the order of the requests.
    fn replies(&mut self, context: &str) -> Vec<Vec<u8>> {
        let mut replies = vec![None; self.sent as usize];
        for i in 0..self.sent as usize {
            let mut datagram = [0; 2048];
            let len = self.sockets[i % CLIENTS]
                .recv(&mut datagram)
                .unwrap_or_else(|error| panic!("{context}: no reply: {error}"));
            let (header, body) = Header::parse(&datagram[..len]).unwrap();
            assert_eq!(header.flag.status(), Status::Ok, "{context}");
            let place = &mut replies[header.index as usize];
            assert!(place.is_none(), "{context}: answered twice");
            *place = Some(body.to_vec());
        }
        self.sent = 0;
        replies.into_iter().map(Option::unwrap).collect()
    }
}

/// The writes of a round: keys that are new, changed, and removed, spread over the store.
fn writes(round: u64) -> Vec<Write> {
    let at = |i: u64| (i * KEYS / WRITES + 37 * round) % KEYS;
    (0..WRITES)
        .map(|i| match i {
            0 => (key_of(at(i)).to_vec(), None),
            1 | 2 => (key_of(at(i)).to_vec(), Some(round.to_be_bytes().to_vec())),
            // Between two keys of the filled store.
            _ => {
                let key = [&key_of(at(i))[..], &round.to_be_bytes()].concat();
                (key, Some(vec![i as u8; 40]))
            }
        })
        .collect()
}

fn write(map: &mut Map, (key, value): &Write) {
    match value {
        Some(value) => map.insert(key.clone(), value.clone()),
        None => map.remove(key),
    };
}

/// The reply to a SCAN from `first` on of all there is.
fn scanned(map: &Map, first: &[u8]) -> (u32, u64, Vec<u8>) {
    let mut checksum = Checksum::default();
    let (mut entries, mut last) = (0, Vec::new());
    for (key, value) in map.range(first.to_vec()..) {
        checksum.add(key);
        checksum.add(value);
        entries += 1;
        last.clone_from(key);
    }
    (entries, checksum.value(), last)
}

/// Whether a SCAN beside these writes may have this reply: it has seen each of them, or not.
fn is_possible(before: &Map, writes: &[Write], first: &[u8], reply: &[u8]) -> bool {
    let reply = read_scan(reply).expect("a SCAN's reply");
    (0..1_u32 << writes.len()).any(|seen| {
        let mut map = before.clone();
        let seen = (0..writes.len()).filter(|i| seen >> i & 1 == 1);
        seen.for_each(|i| write(&mut map, &writes[i]));
        scanned(&map, first) == (reply.entries, reply.checksum, reply.last.to_vec())
    })
}

/// SCANs as many as workers, and beside them GETs and writes.
fn serve_round(client: &mut Client, map: &mut Map, round: u64, context: &str) {
    let starts = [Vec::new(), key_of(7 * round % KEYS).to_vec()];
    for first in &starts {
        let count = u32::MAX;
        client.send(Operation::Scan, Request::Scan { first, count });
    }
    let keys: Vec<_> = (0..GETS)
        .map(|i| key_of((i * 499 + round) % KEYS).to_vec())
        .collect();
    let writes = writes(round);
    for i in 0..keys.len().max(writes.len()) {
        if let Some(key) = keys.get(i) {
            client.send(Operation::Get, Request::Get { key });
        }
        match writes.get(i) {
            Some((key, Some(value))) => client.send(Operation::Put, Request::Put { key, value }),
            Some((key, None)) => client.send(Operation::Delete, Request::Delete { key }),
            None => {}
        }
    }
    let replies = client.replies(context);
    for (first, reply) in starts.iter().zip(&replies) {
        assert!(
            is_possible(map, &writes, first, reply),
            "{context}: a SCAN saw another store"
        );
    }
    let before = map.clone();
    writes.iter().for_each(|done| write(map, done));
    let gets = replies[starts.len()..].iter();
    let gets = gets
        .filter(|body| !body.is_empty())
        .map(|body| read_get(body).unwrap());
    for (key, value) in keys.iter().zip(gets) {
        let found = [before.get(key), map.get(key)].map(|found| found.map(Vec::as_slice));
        assert!(found.contains(&value), "{context}: a GET saw {value:?}");
    }
}

/// Serves rounds until a SCAN was interrupted, where the policy does so. Returns how many requests changed threads.
fn serve(spec: &ServerSpec, admission: Admission, layout: Layout) -> u64 {
    let context = format!("{spec}, {layout:?}");
    let kv = Kv::filled(KEYS, 100, 1).unwrap();
    let mut map = contents(&kv);
    let watched = Watched {
        kv,
        moved: Arc::default(),
    };
    let moved = Arc::clone(&watched.moved);
    let server = start(spec, admission, layout, watched);
    let mut client = Client::of(&server);
    let deadline = Instant::now() + FOREVER;
    let mut round = 0;
    while round < ROUNDS || (admission.interrupts() && server.stats().preemptions == 0) {
        assert!(
            Instant::now() < deadline,
            "{context}: no SCAN is interrupted"
        );
        serve_round(&mut client, &mut map, round, &context);
        round += 1;
    }
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.panics, stats.abandoned), (0, 0), "{context}");
    moved.load(Ordering::Relaxed)
}

/// What a filled store holds.
fn contents(kv: &Kv) -> Map {
    let mut room = [0; 512];
    (0..KEYS)
        .map(|i| {
            let (key, mut body) = (key_of(i), [0; 64]);
            let len = Request::Get { key: &key }.encode(&mut body).unwrap();
            let len = kv.answer(&body[..len], &mut room).unwrap();
            let value = read_get(&room[..len]).unwrap().expect("it was filled");
            (key.to_vec(), value.to_vec())
        })
        .collect()
}

#[test]
fn a_scan_sees_each_entry_once_under_every_live_policy() {
    let shape = server_shape(WORKERS, &classes(), 1024).unwrap();
    let (mut served, mut moved) = (0, 0);
    for policy in ALL {
        let spec = policy.by_default();
        if !spec.runs_live() {
            continue;
        }
        let mut shape = shape.clone();
        shape.resume = headway_policy::Resume::Anywhere;
        let admission = admit(&spec, &shape).unwrap();
        let layouts: &[Layout] = if admission.is_laid_out() {
            &[Layout::Inline, Layout::Dedicated]
        } else {
            &[Layout::Auto]
        };
        for &layout in layouts {
            moved += serve(&spec, admission, layout);
            served += 1;
        }
    }
    assert!(served >= ALL.len(), "{served} servers");
    assert!(moved > 0, "no SCAN went on in another thread");
}
