//! Loopback tests of the UDP datapath.

use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::*;
use crate::datapath::{Rx, Tx};
use crate::pool::{FreeList, SlotId, SlotPool};
use crate::slot::{PAYLOAD_BYTES, Slot};

/// So long that a wait which should have ended hangs the test instead of passing late.
const FOREVER_NS: u64 = 3_600_000_000_000;

/// A server with its memory, and a client that fails loudly instead of waiting for ever.
struct Loopback {
    pool: SlotPool,
    free: FreeList,
    rxs: Vec<Arc<dyn Rx>>,
    txs: Vec<Box<dyn Tx>>,
    client: UdpSocket,
    server: SocketAddr,
}

fn loopback(ip: &str, slots: usize, queues: usize, steering: Steering) -> Loopback {
    let addr = format!("{ip}:0").parse().unwrap();
    let datapath = UdpDatapath::bind(addr).unwrap().with_steering(steering);
    let server = datapath.local_addr();
    let DatapathEnds { rxs, txs } = Box::new(datapath).split(queues, 1).unwrap();
    let (pool, free) = SlotPool::new(slots).unwrap();
    Loopback {
        pool,
        free,
        rxs,
        txs,
        client: client(ip),
        server,
    }
}

fn client(ip: &str) -> UdpSocket {
    let client = UdpSocket::bind(format!("{ip}:0")).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    client
}

impl Loopback {
    /// Receives from the first queue until `count` requests are there.
    fn receive(&mut self, count: usize) -> Vec<SlotId> {
        let (mut out, rx) = (Vec::new(), &self.rxs[0]);
        let mut scratch = rx.scratch();
        while out.len() < count {
            rx.wait(FOREVER_NS);
            rx.poll(
                0,
                &mut scratch,
                &self.pool,
                &mut self.free,
                &mut out,
                usize::MAX,
            );
        }
        out
    }

    /// Takes and drops the requests that wait in a queue; returns their number.
    fn drain(&mut self, queue: usize) -> usize {
        let (mut out, mut count) = (Vec::new(), 0);
        let rx = &self.rxs[queue];
        let mut scratch = rx.scratch();
        while rx.poll(
            0,
            &mut scratch,
            &self.pool,
            &mut self.free,
            &mut out,
            usize::MAX,
        ) > 0
        {
            count += out.len();
            out.drain(..).for_each(|id| self.free.give(id));
        }
        count
    }

    fn reply(&self) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let (len, from) = self.client.recv_from(&mut buffer).unwrap();
        assert_eq!(from, self.server, "a response comes from the address asked");
        buffer[..len].to_vec()
    }
}

#[test]
fn a_request_is_answered_from_its_own_slot() {
    for ip in ["127.0.0.1", "[::1]"] {
        let mut net = loopback(ip, 4, 1, Steering::Flow);
        net.client.send_to(b"ping", net.server).unwrap();
        let mut ids = net.receive(1);
        let slot = net.pool.get_mut(&mut ids[0]);
        assert_eq!((slot.payload(), slot.truncated), (&b"ping"[..], false));
        assert_eq!(slot.class, Slot::UNCLASSIFIED);
        assert_eq!(slot.peer.socket_addr(), net.client.local_addr().unwrap());
        slot.buffer_mut()[..6].copy_from_slice(b"pong!!");
        slot.set_len(6);
        net.txs[0].send(&net.pool, &mut ids[0], 0).unwrap();
        assert_eq!(net.reply(), b"pong!!");
    }
}

#[test]
fn a_wildcard_v6_socket_serves_both_families() {
    let datapath = UdpDatapath::bind("[::]:0".parse().unwrap()).unwrap();
    let port = datapath.local_addr().port();
    let DatapathEnds { rxs, mut txs } = Box::new(datapath).split(1, 1).unwrap();
    let (pool, mut free) = SlotPool::new(2).unwrap();
    for ip in ["127.0.0.1", "[::1]"] {
        let client = client(ip);
        client
            .send_to(ip.as_bytes(), format!("{ip}:{port}"))
            .unwrap();
        let mut out = Vec::new();
        rxs[0].wait(FOREVER_NS);
        while rxs[0].poll(0, &mut rxs[0].scratch(), &pool, &mut free, &mut out, 1) == 0 {}
        txs[0].send(&pool, &mut out[0], 0).unwrap();
        let mut reply = [0; 64];
        let len = client.recv(&mut reply).unwrap();
        assert_eq!(&reply[..len], ip.as_bytes());
        free.give(out.remove(0));
    }
}

#[test]
fn a_server_on_all_addresses_answers_from_the_one_it_was_asked_at() {
    for (all, ip, queues) in [
        ("0.0.0.0", "127.0.0.2", 1),
        ("0.0.0.0", "127.0.0.2", 3),
        ("[::]", "127.0.0.3", 1),
        ("[::]", "[::1]", 1),
    ] {
        let mut net = loopback(all, 8, queues, Steering::Flow);
        let asked: SocketAddr = format!("{ip}:{}", net.server.port()).parse().unwrap();
        let own = if asked.is_ipv4() {
            "127.0.0.1:0"
        } else {
            "[::1]:0"
        };
        let client = UdpSocket::bind(own).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // A connected socket takes nothing from another address.
        client.connect(asked).unwrap();
        for _ in 0..2 {
            client.send(b"who is there?").unwrap();
        }
        let mut ids = Vec::new();
        while ids.len() < 2 {
            for rx in &net.rxs {
                rx.poll(0, &mut rx.scratch(), &net.pool, &mut net.free, &mut ids, 2);
            }
        }
        net.txs[0].send(&net.pool, &mut ids[0], 0).unwrap();
        assert_eq!(net.txs[0].send_sheds(&net.pool, &mut ids[1..], 0), 1);
        for _ in 0..2 {
            let mut reply = [0; 64];
            let len = client.recv(&mut reply).unwrap();
            assert_eq!(&reply[..len], b"who is there?", "{all} {ip}");
        }
    }
}

#[test]
fn what_claims_to_come_from_the_server_itself_is_emptied() {
    for ip in ["127.0.0.1", "0.0.0.0", "[::]"] {
        let mut net = loopback(ip, 4, 1, Steering::Flow);
        let near = if net.server.is_ipv4() {
            "127.0.0.1"
        } else {
            "[::1]"
        };
        let asked: SocketAddr = format!("{near}:{}", net.server.port()).parse().unwrap();
        let mut id = net.free.take().unwrap();
        let slot = net.pool.get_mut(&mut id);
        slot.set_len(20);
        slot.peer = asked.into();
        // The server's own socket: what a forger writes as the sender, and no other process can have.
        net.txs[0].send(&net.pool, &mut id, 0).unwrap();
        net.client = client(near);
        net.client.send_to(&[1; 20], asked).unwrap();
        let ids = net.receive(2);
        let lengths: Vec<usize> = ids
            .iter()
            .map(|id| net.pool.get(id).payload().len())
            .collect();
        assert_eq!(lengths, [0, 20], "{ip}");
    }
}

#[test]
fn a_datagram_too_long_for_a_slot_is_marked() {
    let mut net = loopback("127.0.0.1", 4, 1, Steering::Flow);
    for len in [PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 0] {
        net.client.send_to(&vec![7; len], net.server).unwrap();
    }
    let ids = net.receive(3);
    let seen: Vec<_> = ids
        .iter()
        .map(|id| (net.pool.get(id).payload().len(), net.pool.get(id).truncated))
        .collect();
    assert_eq!(
        seen,
        [(PAYLOAD_BYTES, false), (PAYLOAD_BYTES, true), (0, false)]
    );
}

#[test]
fn bursts_arrive_in_order_without_loss_though_slots_run_out() {
    const REQUESTS: u32 = 200;
    let mut net = loopback("127.0.0.1", 70, 1, Steering::Flow);
    for index in 0..REQUESTS {
        net.client
            .send_to(&index.to_be_bytes(), net.server)
            .unwrap();
    }
    assert!(net.rxs[0].backlog_hint() > 0);
    let mut seen = Vec::new();
    while seen.len() < REQUESTS as usize {
        for id in net.receive(1) {
            seen.push(u32::from_be_bytes(
                net.pool.get(&id).payload().try_into().unwrap(),
            ));
            net.free.give(id);
        }
    }
    assert_eq!(seen, (0..REQUESTS).collect::<Vec<_>>());
    assert_eq!((net.free.len(), net.rxs[0].dropped()), (70, 0));
    assert_eq!(net.rxs[0].backlog_hint(), 0);
}

#[test]
fn polling_takes_no_more_than_asked_and_nothing_without_slots() {
    let mut net = loopback("127.0.0.1", 2, 1, Steering::Flow);
    for _ in 0..3 {
        net.client.send_to(b"x", net.server).unwrap();
    }
    let (mut scratch, mut out) = (net.rxs[0].scratch(), Vec::new());
    let mut poll = |max| net.rxs[0].poll(0, &mut scratch, &net.pool, &mut net.free, &mut out, max);
    assert_eq!((poll(0), poll(1), poll(9), poll(9)), (0, 1, 1, 0));
}

#[test]
fn sheds_leave_in_one_batch_and_skip_the_unreachable() {
    let mut net = loopback("127.0.0.1", 200, 1, Steering::Flow);
    for index in 0..150u8 {
        net.client.send_to(&[index], net.server).unwrap();
    }
    let mut ids = net.receive(150);
    // Port 0 is no destination: the kernel refuses it.
    net.pool.get_mut(&mut ids[70]).peer = "127.0.0.1:0".parse::<SocketAddr>().unwrap().into();
    assert_eq!(net.txs[0].send_sheds(&net.pool, &mut ids, 0), 149);
    let replies: HashSet<u8> = (0..149).map(|_| net.reply()[0]).collect();
    assert_eq!(replies.len(), 149);
    assert!(!replies.contains(&70));
}

#[test]
fn a_full_kernel_queue_counts_what_it_drops() {
    const REQUESTS: u64 = 50_000;
    let mut net = loopback("127.0.0.1", 64, 1, Steering::Flow);
    for _ in 0..REQUESTS {
        net.client.send_to(&[0; 1000], net.server).unwrap();
    }
    let received = net.drain(0) as u64;
    assert!(received > 0 && net.rxs[0].dropped() > 0);
    assert_eq!(received + net.rxs[0].dropped(), REQUESTS);
}

/// How many of the requests of `clients` sockets each queue gets. Each client's are taken before the next sends, so
/// that the small buffers of an unprivileged run suffice.
fn distribution(
    steering: Steering,
    queues: usize,
    clients: usize,
    requests_each: usize,
) -> Vec<usize> {
    let mut net = loopback("127.0.0.1", 64, queues, steering);
    let mut counts = vec![0; queues];
    for _ in 0..clients {
        let client = client("127.0.0.1");
        for _ in 0..requests_each {
            client.send_to(b"x", net.server).unwrap();
        }
        for (queue, count) in counts.iter_mut().enumerate() {
            *count += net.drain(queue);
        }
    }
    counts
}

#[test]
fn flows_spread_over_the_queues_and_stay_there() {
    let counts = distribution(Steering::Flow, 3, 100, 5);
    assert_eq!(counts.iter().sum::<usize>(), 500);
    assert!(
        counts.iter().all(|count| *count > 0 && count % 5 == 0),
        "{counts:?}"
    );
}

#[test]
fn datagrams_spread_at_random_whatever_their_flow() {
    let counts = distribution(Steering::Random, 3, 15, 200);
    assert_eq!(counts.iter().sum::<usize>(), 3000);
    // By flow, every count would be a multiple of 200. 1000 expected, standard deviation 26: seven of them miss once in 10¹¹ runs.
    assert!(
        counts.iter().all(|count| count.abs_diff(1000) < 182),
        "{counts:?}"
    );
}

#[test]
fn a_byte_of_the_header_names_the_queue() {
    for byte in [HeaderByte::CLASS, HeaderByte::new(9).unwrap()] {
        let mut net = loopback("127.0.0.1", 64, 3, Steering::Byte(byte));
        let place = if byte == HeaderByte::CLASS { 0 } else { 9 };
        for (value, queue) in [(0, 0), (1, 1), (2, 2), (3, 0), (7, 1), (255, 0)] {
            let mut request = [77; 10];
            request[place] = value;
            // From a flow of its own, which by itself would choose another queue now and then.
            client("127.0.0.1").send_to(&request, net.server).unwrap();
            let counts = [0, 1, 2].map(|queue| net.drain(queue));
            let mut expected = [0; 3];
            expected[queue] = 1;
            assert_eq!(counts, expected, "{value} at {byte:?}");
        }
    }
}

#[test]
fn a_datagram_too_short_for_its_steering_byte_goes_to_the_first_queue() {
    let steering = Steering::Byte(HeaderByte::new(9).unwrap());
    let mut net = loopback("127.0.0.1", 8, 2, steering);
    net.client.send_to(&[1; 9], net.server).unwrap();
    net.client.send_to(&[1; 10], net.server).unwrap();
    assert_eq!((net.drain(0), net.drain(1)), (1, 1));
}

#[test]
#[expect(unsafe_code, reason = "SO_LOCK_FILTER has no safe wrapper")]
fn a_steering_program_that_the_kernel_refuses_has_a_remedy() {
    let datapath = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let datapath = datapath.with_steering(Steering::Random);
    // The kernel takes no program on a socket whose filter is locked.
    let (locked, bytes) = (1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: `locked` has the size given and outlives the call.
    let result = unsafe {
        let (fd, option) = (datapath.socket.as_raw_fd(), libc::SO_LOCK_FILTER);
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            option,
            (&raw const locked).cast(),
            bytes,
        )
    };
    assert_eq!(result, 0);
    let error = Box::new(datapath).split(2, 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(
        error
            .to_string()
            .contains("steer by flow, which needs none"),
        "{error}"
    );
}

#[test]
fn a_port_in_use_is_refused_with_a_remedy_even_if_shared() {
    for queues in [1, 2] {
        let datapath = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = datapath.local_addr();
        let _queues = Box::new(datapath).split(queues, 0).unwrap();
        let error = UdpDatapath::bind(addr).unwrap_err();
        assert!(matches!(error, BindError::InUse { addr: named } if named == addr));
        assert!(error.to_string().contains("choose another port"), "{error}");
    }
}

#[test]
fn an_address_of_another_machine_is_refused() {
    for (addr, works) in [("192.0.2.1:0", "0.0.0.0:0"), ("[2001:db8::1]:0", "[::]:0")] {
        let error = UdpDatapath::bind(addr.parse().unwrap()).unwrap_err();
        assert!(matches!(error, BindError::NotLocal { .. }), "{error}");
        assert!(error.to_string().contains(&format!("use {works} for all")));
        UdpDatapath::bind(works.parse().unwrap()).unwrap();
    }
}

#[test]
fn no_queue_at_all_is_refused() {
    let datapath = UdpDatapath::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Box::new(datapath).split(0, 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_wait_ends_by_a_request_a_wake_or_the_time() {
    let net = loopback("127.0.0.1", 1, 1, Steering::Flow);
    let rx = &net.rxs[0];
    rx.wait(1);
    rx.wake();
    rx.wait(FOREVER_NS);
    std::thread::scope(|scope| {
        scope.spawn(|| rx.wait(FOREVER_NS));
        rx.wake();
    });
    net.client.send_to(b"x", net.server).unwrap();
    rx.wait(FOREVER_NS);
    assert!(!rx.finished());
}
