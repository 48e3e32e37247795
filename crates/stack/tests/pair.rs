//! Two stacks over one pair of lanes, without a kernel: each receives all that the other sends, whatever is lost in between.
#![expect(
    unsafe_code,
    reason = "threads in user space move between kthreads by a promise"
)]

mod neighbours;

use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use headway_stack::{
    NetStack, OsThreads, StackConfig, TcpListener, TcpStream, UdpSocket, Uthreads,
};
use headway_threads::{Migration, Runtime, spawn};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Stack = NetStack<OsThreads>;

fn config(host: u8) -> StackConfig {
    let ip = Ipv4Addr::new(10, 0, 0, host);
    StackConfig::new([2, 0, 0, 0, 9, host], ip, 24, [7, u64::from(host)])
}

/// Polls a stack until it is stopped.
struct Polled {
    stack: Arc<Stack>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Polled {
    fn new(host: u8, lane: LaneEnds) -> Self {
        Self::with(&config(host), lane)
    }

    fn with(config: &StackConfig, lane: LaneEnds) -> Self {
        let stack = NetStack::new(config, vec![lane], OsThreads);
        let (polled, stop) = (Arc::clone(&stack), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                if !polled.poll() {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self {
            stack,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it polls");
        }
    }
}

fn pair() -> (Polled, Polled) {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let one = LaneEnds::of_plane(&memory, 0).expect("it fits");
    let other = LaneEnds::of_application(&memory, 0).expect("it fits");
    (Polled::new(1, one), Polled::new(2, other))
}

/// Bytes that differ from every shift and repetition of themselves.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn bytes_cross_both_ways_exactly_and_the_end_is_seen() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 4).expect("the port");
    let at = listener.local_addr();
    let bytes = pattern(3_000_000);
    let serving = std::thread::spawn(move || {
        let stream = listener.accept().expect("a connection");
        let mut received = Vec::new();
        (&stream).read_to_end(&mut received).expect("to the end");
        (&stream).write_all(&received).expect("written");
        received.len()
    });
    let stream = TcpStream::connect(&client.stack, at, Duration::from_secs(5)).expect("connected");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&bytes).expect("written");
            stream.shutdown(Shutdown::Write);
        });
        let mut echoed = Vec::new();
        (&stream).read_to_end(&mut echoed).expect("to the end");
        assert!(echoed == bytes, "the same bytes");
    });
    assert_eq!(serving.join().expect("the server"), bytes.len());
}

#[test]
fn many_connections_one_after_another_and_at_once() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 8).expect("the port");
    let at = listener.local_addr();
    let listener = Arc::new(listener);
    for _ in 0..4 {
        let listener = Arc::clone(&listener);
        std::thread::spawn(move || {
            while let Ok(stream) = listener.accept() {
                let mut line = [0; 4];
                if (&stream).read_exact(&mut line).is_ok() {
                    (&stream).write_all(&line).expect("written");
                }
            }
        });
    }
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let stack = &client.stack;
            scope.spawn(move || {
                for round in 0..20u8 {
                    let stream =
                        TcpStream::connect(stack, at, Duration::from_secs(5)).expect("connected");
                    let line = [thread, round, 7, 9];
                    (&stream).write_all(&line).expect("written");
                    let mut back = [0; 4];
                    (&stream).read_exact(&mut back).expect("answered");
                    assert_eq!(back, line);
                }
            });
        }
    });
}

#[test]
fn nobody_there_is_refused_and_a_silent_address_times_out() {
    let (_server, client) = pair();
    let patience = Duration::from_millis(300);
    let connect = |host, port| {
        let to = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), port);
        TcpStream::connect(&client.stack, to, patience)
            .map(drop)
            .map_err(|error| error.kind())
    };
    assert_eq!(connect(1, 81), Err(io::ErrorKind::ConnectionRefused));
    assert_eq!(connect(7, 80), Err(io::ErrorKind::TimedOut));
    assert_eq!(connect(1, 0), Err(io::ErrorKind::InvalidInput));
    assert_eq!(connect(2, 80), Err(io::ErrorKind::InvalidInput), "its own");
    let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
    let own = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 9);
    let said = socket.send_to(b"x", own).expect_err("its own").to_string();
    assert!(said.contains("is this stack's own address"), "{said}");
}

#[test]
fn datagrams_come_whole_with_their_sender_and_a_port_has_one_owner() {
    let (server, client) = pair();
    let serving = UdpSocket::bind(&server.stack, 53).expect("the port");
    let taken = UdpSocket::bind(&server.stack, 53).expect_err("it is taken");
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let at = serving.local_addr();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        for _ in 0..200 {
            let (bytes, from) = serving.recv_from(&mut buffer).expect("a datagram");
            serving.send_to(&buffer[..bytes], from).expect("sent");
        }
    });
    let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
    for length in 0..200 {
        let datagram = pattern(length * 7);
        socket.send_to(&datagram, at).expect("sent");
        let mut buffer = [0; 2000];
        let (bytes, from) = socket.recv_from(&mut buffer).expect("an answer");
        assert_eq!((&buffer[..bytes], from), (&datagram[..], at));
    }
    thread.join().expect("the server");
    let invalid = socket
        .send_to(b"x", SocketAddr::new(at.ip(), 0))
        .expect_err("port 0");
    assert_eq!(invalid.kind(), io::ErrorKind::InvalidInput);
}

/// However small the buffers: a reader that waits gets each.
#[test]
fn a_datagram_longer_than_a_sockets_buffer_comes_whole() {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let one = LaneEnds::of_plane(&memory, 0).expect("it fits");
    let other = LaneEnds::of_application(&memory, 0).expect("it fits");
    let small = StackConfig {
        buffer_bytes: 1,
        ..config(1)
    };
    let (server, client) = (Polled::with(&small, one), Polled::new(2, other));
    let serving = UdpSocket::bind(&server.stack, 53).expect("the port");
    let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
    let (at, (sender, lengths)) = (serving.local_addr(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((length, _)) = serving.recv_from(&mut buffer) {
            if sender.send(length).is_err() {
                return;
            }
        }
    });
    for length in [1472, 1025, 1472] {
        socket.send_to(&pattern(length), at).expect("sent");
        let came = lengths.recv_timeout(Duration::from_secs(60));
        assert_eq!(came, Ok(length));
    }
    assert_eq!(server.stack.counts().overrun, 0);
}

#[test]
fn flush_waits_until_the_other_side_has_what_a_dropped_connection_wrote() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 1).expect("the port");
    let at = listener.local_addr();
    let stream = TcpStream::connect(&client.stack, at, Duration::from_secs(5)).expect("connected");
    let accepted = listener.accept().expect("a connection");
    let server_stack = Arc::clone(&server.stack);
    // No thread polls the server's stack from here on, so it acknowledges nothing.
    drop(server);
    let bytes = pattern(30_000);
    (&stream).write_all(&bytes).expect("there is room for it");
    drop(stream);
    assert!(!client.stack.flush(Duration::from_millis(50)));

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if !server_stack.poll() {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        let flushed = client.stack.flush(Duration::from_secs(30));
        stop.store(true, Ordering::Relaxed);
        assert!(flushed, "the server acknowledges everything");
    });
    // The client's end has closed; its data is here.
    drop(client);
    let mut received = Vec::new();
    (&accepted).read_to_end(&mut received).expect("to the end");
    assert!(received == bytes, "the same bytes");
}

/// A reset ends a dropped connection that still owes data: no peer will acknowledge it.
#[test]
fn flush_says_once_that_a_dropped_connection_lost_data() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 1).expect("the port");
    let at = listener.local_addr();
    let stream = TcpStream::connect(&client.stack, at, Duration::from_secs(5)).expect("connected");
    let accepted = listener.accept().expect("a connection");
    // Twice the server's buffer: it cannot have acknowledged all of it.
    let bytes = pattern(65_536);
    for _ in 0..2 {
        (&stream).write_all(&bytes).expect("there is room for it");
    }
    drop(stream);
    let mut first = [0; 100];
    (&accepted).read_exact(&mut first).expect("they came");
    drop(accepted);
    let patience = Duration::from_secs(20);
    assert!(!client.stack.flush(patience), "data was lost");
    assert!(client.stack.flush(patience), "nothing since the last flush");
}

/// An echo for each connection, in threads in user space on both sides.
#[test]
fn threads_in_user_space_block_in_sockets_and_the_others_go_on() {
    const KTHREADS: usize = 2;
    const CLIENTS: usize = 12;
    // SAFETY: neither these threads nor the stack use thread-local variables of `std`, and the stack holds its lock in sections only.
    let migration = unsafe { Migration::allow() };
    let runtime = Runtime::builder().kthreads(KTHREADS, migration);
    let runtime = runtime.stack_bytes(256 << 10).start().expect("threads");
    let memory = SharedMapping::anonymous(KTHREADS * LANE_BYTES).expect("memory");
    let memory = Arc::new(memory);
    let ends = |of: fn(&Arc<SharedMapping>, usize) -> Option<LaneEnds>| {
        let ends = (0..KTHREADS).map(|kthread| of(&memory, kthread * LANE_BYTES));
        ends.collect::<Option<Vec<_>>>().expect("the lanes fit")
    };
    let server = NetStack::new(&config(1), ends(LaneEnds::of_plane), Uthreads);
    let client = NetStack::new(&config(2), ends(LaneEnds::of_application), Uthreads);
    runtime.run(move || {
        let polling = [server.spawn_polling(), client.spawn_polling()];
        let listener = TcpListener::bind(&server, 80, CLIENTS).expect("the port");
        let at = listener.local_addr();
        let accepting = spawn(move || {
            let serve = |_| {
                let stream = listener.accept().expect("a connection");
                spawn(move || {
                    let mut received = Vec::new();
                    (&stream).read_to_end(&mut received).expect("to the end");
                    (&stream).write_all(&received).expect("written");
                })
            };
            let serving: Vec<_> = (0..CLIENTS).map(serve).collect();
            for thread in serving {
                thread.join().expect("it serves");
            }
        });
        let ask = |number: usize| {
            let client = Arc::clone(&client);
            spawn(move || {
                let patience = Duration::from_secs(20);
                let stream = TcpStream::connect(&client, at, patience).expect("connected");
                let bytes = pattern(100_000 + number);
                (&stream).write_all(&bytes).expect("written");
                stream.shutdown(Shutdown::Write);
                let mut echoed = Vec::new();
                (&stream).read_to_end(&mut echoed).expect("to the end");
                assert!(echoed == bytes, "client {number}: the same bytes");
            })
        };
        let asking: Vec<_> = (0..CLIENTS).map(ask).collect();
        for thread in asking {
            thread.join().expect("it is answered");
        }
        accepting.join().expect("it accepts");
        assert!(server.flush(Duration::from_secs(20)) && client.flush(Duration::from_secs(20)));
        drop((server, client));
        for thread in polling {
            thread.join().expect("it polls");
        }
    });
}

/// What is due in an idle stack wakes a kthread for nothing.
#[test]
fn nothing_is_due_after_a_connection() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 4).expect("the port");
    let at = listener.local_addr();
    let stream = TcpStream::connect(&client.stack, at, Duration::from_secs(5)).expect("connected");
    let accepted = listener.accept().expect("a connection");
    (&stream).write_all(b"question").expect("written");
    (&accepted).read_exact(&mut [0; 8]).expect("it comes");
    let is_idle = || [&server, &client].map(|host| host.stack.idle_for());
    let begun = std::time::Instant::now();
    while is_idle() != [None, None] {
        let now = is_idle();
        assert!(begun.elapsed() < Duration::from_secs(60), "open: {now:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(stream);
    drop(accepted);
    while is_idle() != [None, None] {
        let now = is_idle();
        assert!(begun.elapsed() < Duration::from_secs(60), "closed: {now:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn two_threads_that_wait_for_one_connection_are_both_woken() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server.stack, 80, 4).expect("the port");
    let at = listener.local_addr();
    let stream = TcpStream::connect(&client.stack, at, Duration::from_secs(5)).expect("connected");
    let accepted = listener.accept().expect("a connection");
    let datagrams = UdpSocket::bind(&server.stack, 53).expect("the port");
    std::thread::scope(|scope| {
        let read = || accepted.receive(&mut [0; 8]).expect("it comes");
        let readers = [scope.spawn(read), scope.spawn(read)];
        let receive = || datagrams.recv_from(&mut [0; 8]).expect("it comes").0;
        let receivers = [scope.spawn(receive), scope.spawn(receive)];
        let accept = || listener.accept().map(drop).expect("it comes");
        let accepting = [scope.spawn(accept), scope.spawn(accept)];
        std::thread::sleep(Duration::from_millis(50));
        // One byte ends one call; the end of the stream the other.
        (&stream).write_all(&[7]).expect("written");
        std::thread::sleep(Duration::from_millis(50));
        stream.shutdown(Shutdown::Write);
        let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
        for _ in 0..2 {
            socket.send_to(&[7], datagrams.local_addr()).expect("sent");
            let more = TcpStream::connect(&client.stack, at, Duration::from_secs(5));
            drop(more.expect("connected"));
        }
        let mut read = readers.map(|reader| reader.join().expect("it reads"));
        read.sort_unstable();
        assert_eq!(read, [0, 1]);
        assert_eq!(
            receivers.map(|one| one.join().expect("it receives")),
            [1, 1]
        );
        for one in accepting {
            one.join().expect("it accepts");
        }
    });
}

#[test]
fn a_datagram_beyond_the_mtu_is_an_error_and_the_longest_arrives() {
    let (server, client) = pair();
    let serving = UdpSocket::bind(&server.stack, 53).expect("the port");
    let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
    let too_long = socket.send_to(&[0; 1473], serving.local_addr());
    let error = too_long.expect_err("28 bytes are headers");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1472"), "{error}");
    socket
        .send_to(&pattern(1472), serving.local_addr())
        .expect("sent");
    let mut buffer = [0; 2000];
    let (bytes, _) = serving.recv_from(&mut buffer).expect("a datagram");
    assert!(buffer[..bytes] == pattern(1472));
}

#[test]
fn tcp_and_udp_over_ipv6() {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let one = LaneEnds::of_plane(&memory, 0).expect("it fits");
    let other = LaneEnds::of_application(&memory, 0).expect("it fits");
    let ip6 = |host: u8| Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(host));
    let polled = |host, lane| {
        let config = StackConfig {
            ip6: Some(ip6(host)),
            ..config(host)
        };
        Polled::with(&config, lane)
    };
    let (server, client) = (polled(1, one), polled(2, other));
    let listener = TcpListener::bind(&server.stack, 80, 4).expect("the port");
    let bytes = pattern(300_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept().expect("a connection");
            assert_eq!(stream.peer_addr().ip(), ip6(2));
            let mut received = Vec::new();
            (&stream).read_to_end(&mut received).expect("to the end");
            (&stream).write_all(&received).expect("written");
        });
        let to = SocketAddr::new(ip6(1).into(), 80);
        let stream = TcpStream::connect(&client.stack, to, Duration::from_secs(20));
        let stream = stream.expect("connected");
        (&stream).write_all(&bytes).expect("written");
        stream.shutdown(Shutdown::Write);
        let mut echoed = Vec::new();
        (&stream).read_to_end(&mut echoed).expect("to the end");
        assert!(echoed == bytes, "the same bytes");
    });
    let serving = UdpSocket::bind(&server.stack, 53).expect("the port");
    let socket = UdpSocket::bind(&client.stack, 0).expect("a port");
    let to = SocketAddr::new(ip6(1).into(), 53);
    socket.send_to(b"six", to).expect("sent");
    let mut buffer = [0; 8];
    let (length, from) = serving.recv_from(&mut buffer).expect("a datagram");
    assert_eq!((&buffer[..length], from.ip()), (&b"six"[..], ip6(2).into()));
}

/// Who waits polls when something is due, where no other thread does: a request that got lost is sent again.
#[test]
fn a_thread_that_waits_alone_sends_again_what_got_lost() {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let mut plane = LaneEnds::of_plane(&memory, 0).expect("it fits");
    let lane = LaneEnds::of_application(&memory, 0).expect("it fits");
    let stack = NetStack::new(&config(2), vec![lane], OsThreads);
    std::thread::spawn(move || {
        let at = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 80));
        TcpStream::connect(&stack, at, Duration::from_secs(120)).map(drop)
    });
    let (mut requests, mut packet) = (0, [0; MOST_PACKET_BYTES]);
    let begun = std::time::Instant::now();
    while requests < 2 && begun.elapsed() < Duration::from_secs(60) {
        while let Ok(Taken::Packet(_)) = plane.receiver.receive(&mut packet) {
            requests += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(requests >= 2, "{requests} requests");
}
