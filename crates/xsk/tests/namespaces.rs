//! `AF_XDP` on real devices: two network namespaces tied by a veth pair. They need root; otherwise the tests print why they are skipped.

#[path = "../../xdp/tests/common/net.rs"]
mod net;
mod refused_devices;
mod tags;
#[path = "../../xdp/tests/common/vlan.rs"]
mod vlan;

use headway_machine::thread::uninterrupted;
use headway_net::datapath::{Datapath as _, DatapathEnds, Rx, Scratch, Tx};
use headway_net::pool::{FreeList, SlotId, SlotPool};
use headway_net::udp::Steering;
use headway_xsk::{HostAddress, MacAddress, XskConfig, XskDatapath, XskPort};
use net::{Host, enter_namespace, missing, shell};
use std::collections::HashSet;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PORT: u16 = 7000;

/// Runs a test in a thread, and so in namespaces that end with it; prints the reason where that is
/// impossible. Tests run one at a time: each spins, and beside others a datagram may wait longer than
/// its sender's timeout.
fn in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = cannot() {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED {test}: {why}");
        return;
    }
    if let Err(panic) = std::thread::spawn(body).join() {
        resume_unwind(panic);
    }
}

fn cannot() -> Option<String> {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    if own.uid() != 0 {
        return Some("attaching an XDP program needs root".into());
    }
    let lacking = headway_xsk::missing();
    let needs = missing().map(str::to_owned);
    needs.or_else(|| (!lacking.is_empty()).then(|| lacking.join("; ")))
}

/// This thread's side: device `p2` with addresses of both families; the client, host 2, has `e0`. Its checksums are left to missing
/// offload hardware, unless `offload` is off.
fn wire(client: &Host<impl Send + 'static>) {
    let device = client.wire();
    assert_eq!(device, "p2");
    shell(
        "ip address add 10.77.0.1/24 dev p2; ip -6 address add fd77::1/64 dev p2 nodad
         ip neigh add 10.77.0.2 lladdr 02:00:00:00:07:02 dev p2",
    );
}

fn client_shell() {
    shell(
        "ip -6 address add fd77::2/64 dev e0 nodad
         ip -6 neigh add fd77::1 lladdr 02:00:00:00:08:02 dev e0",
    );
}

fn config(port: u16, steering: Steering) -> XskConfig {
    XskConfig {
        device: "p2".into(),
        port,
        steering,
    }
}

/// A server's ends, driven by hand.
struct Served {
    pool: SlotPool,
    free: FreeList,
    rxs: Vec<Arc<dyn Rx>>,
    txs: Vec<Box<dyn Tx>>,
}

impl Served {
    fn open(queues: usize, steering: Steering) -> Self {
        let datapath = XskDatapath::open(config(PORT, steering)).expect("AF_XDP");
        let DatapathEnds { rxs, txs } = Box::new(datapath).split(queues, queues).expect("sockets");
        let (pool, free) = SlotPool::new(512).expect("buffers");
        Self {
            pool,
            free,
            rxs,
            txs,
        }
    }

    /// Echoes the packets of one queue, with the queue's number as the last byte.
    fn echo(&mut self, queue: usize, out: &mut Vec<SlotId>) -> usize {
        let received =
            self.rxs[queue].poll(0, &mut Scratch::None, &self.pool, &mut self.free, out, 64);
        for mut slot in out.drain(..) {
            let data = self.pool.get_mut(&mut slot);
            assert!(data.arrived_ns > 0 && !data.truncated);
            if let Some(last) = data.payload_mut().last_mut() {
                *last = queue as u8;
            }
            self.txs[queue]
                .send(&self.pool, &mut slot, 0)
                .expect("sent");
            self.free.give(slot);
        }
        received
    }

    /// Echoes until stopped; returns each queue's number of requests.
    fn echo_until(&mut self, stop: &AtomicBool) -> Vec<usize> {
        let mut out = Vec::with_capacity(64);
        let mut counts = vec![0; self.rxs.len()];
        while !stop.load(Ordering::Relaxed) {
            let mut idle = true;
            for (queue, count) in counts.iter_mut().enumerate() {
                let received = self.echo(queue, &mut out);
                *count += received;
                idle &= received == 0;
            }
            if idle && self.rxs.len() == 1 {
                self.rxs[0].wait(1_000_000);
            }
        }
        counts
    }
}

/// Echoes while the closure runs; returns each queue's number of requests, and the closure's result.
fn echo_while<T>(served: &mut Served, run: impl FnOnce() -> T) -> (Vec<usize>, T) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let echoing = scope.spawn(|| served.echo_until(&stop));
        // Stops the echoing threads however the closure ends.
        let ended = catch_unwind(AssertUnwindSafe(run));
        stop.store(true, Ordering::Relaxed);
        let counts = echoing.join().expect("the server");
        match ended {
            Ok(result) => (counts, result),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Receives the next datagram, and repeats a wait that the system interrupted. If none comes, it says what the kernel of this side counted.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
    uninterrupted(|| socket.recv_from(buffer)).unwrap_or_else(|error| {
        let counted = shell(
            "ip -s link; ip neighbour; grep -E 'Ip|Udp|Icmp' /proc/net/snmp; cat /proc/net/snmp6",
        );
        panic!("nothing is lost: {error}\n{counted}")
    })
}

/// Sends datagrams one after the other from some sockets, and checks that each comes back. Returns the last bytes seen by socket.
fn ask(to: SocketAddr, sockets: usize, requests: usize, length: usize) -> Vec<HashSet<u8>> {
    let local = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    (0..sockets)
        .map(|_| {
            let socket = UdpSocket::bind(local).expect("a socket");
            let timeout = Some(Duration::from_secs(60));
            socket.set_read_timeout(timeout).expect("a timeout");
            let mut queues = HashSet::new();
            for request in 0..requests {
                let mut datagram: Vec<u8> =
                    (0..length).map(|at| (at * 7 + request) as u8).collect();
                socket.send_to(&datagram, to).expect("sent");
                let mut buffer = [0; 2048];
                let (bytes, from) = receive(&socket, &mut buffer);
                assert_eq!((bytes, from), (length, to));
                queues.insert(buffer[length - 1]);
                datagram[length - 1] = buffer[length - 1];
                assert_eq!(buffer[..length], datagram, "the same bytes");
            }
            queues
        })
        .collect()
}

/// The kernel itself answers that no socket listens there.
fn assert_refused(to: &str) {
    let to = to.parse().expect("an address");
    let refused = TcpStream::connect_timeout(&to, Duration::from_secs(5));
    let refused = refused.expect_err("nobody listens").kind();
    assert_eq!(refused, std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn datagrams_of_both_families_come_and_go_and_the_rest_is_the_kernels() {
    in_namespaces("AF_XDP echo", || {
        enter_namespace();
        let client = Host::start(2, || {
            client_shell();
            for to in ["10.77.0.1:7000", "[fd77::1]:7000"] {
                let to = to.parse().expect("an address");
                for length in [1, 10, 64, 1000, 1400] {
                    ask(to, 2, 20, length);
                }
            }
            // Packets of the kernel: ARP, TCP, another port.
            assert_refused("10.77.0.1:7000");
            let to: SocketAddr = "10.77.0.1:7001".parse().expect("an address");
            let other = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            other.send_to(b"kernel", to).expect("sent");
            // A frame as if the sender had a device that fills checksums in.
            shell("ethtool -K e0 tx on");
            ask("10.77.0.1:7000".parse().expect("an address"), 1, 20, 100);
        });
        wire(&client);
        let other = UdpSocket::bind("10.77.0.1:7001").expect("the kernel's socket");
        let timeout = Some(Duration::from_secs(60));
        other.set_read_timeout(timeout).expect("a timeout");
        let mut served = Served::open(1, Steering::Flow);
        let (counts, ()) = echo_while(&mut served, || {
            client.begin();
            let mut buffer = [0; 16];
            let (bytes, _) = receive(&other, &mut buffer);
            assert_eq!(&buffer[..bytes], b"kernel");
            client.end();
        });
        assert_eq!(counts, [2 * 5 * 2 * 20 + 20]);
        assert_eq!(served.rxs[0].dropped(), 0);
        assert_eq!(served.free.len(), 512);
    });
}

#[test]
fn several_sockets_of_one_queue_share_its_frames_and_each_flow_keeps_its_own() {
    in_namespaces("AF_XDP sockets of one queue", || {
        enter_namespace();
        let client = Host::start(2, || {
            let to = "10.77.0.1:7000".parse().expect("an address");
            ask(to, 40, 60, 32)
        });
        wire(&client);
        let mut served = Served::open(4, Steering::Flow);
        let (counts, seen) = echo_while(&mut served, || {
            client.begin();
            client.end()
        });
        assert_eq!(counts.iter().sum::<usize>(), 40 * 60);
        assert!(seen.iter().all(|queues| queues.len() == 1), "{seen:?}");
        // Of 40 flows each of four sockets has some: all but one time in 40 000.
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    });
}

#[test]
fn a_byte_of_the_request_or_chance_chooses_the_socket() {
    in_namespaces("AF_XDP steering", || {
        enter_namespace();
        let client = Host::start(2, || {
            let to = "10.77.0.1:7000".parse().expect("an address");
            // The first byte counts up, so the choice goes round.
            ask(to, 1, 90, 32)
        });
        wire(&client);
        let steering = "class".parse().expect("a steering");
        let mut served = Served::open(3, steering);
        let (counts, _) = echo_while(&mut served, || {
            client.begin();
            client.end()
        });
        assert_eq!(counts, [30; 3]);
        drop(served);
        let client = Host::start(2, || {
            let to = "10.77.0.1:7000".parse().expect("an address");
            ask(to, 1, 300, 32)
        });
        wire(&client);
        let mut served = Served::open(2, Steering::Random);
        let (counts, _) = echo_while(&mut served, || {
            client.begin();
            client.end()
        });
        assert_eq!(counts.iter().sum::<usize>(), 300);
        assert!(counts.iter().all(|&count| count > 90), "{counts:?}");
    });
}

/// Datagrams of a burst, far more than there are frames.
const BURST: usize = 6000;

#[test]
fn a_burst_beyond_the_frames_is_counted_and_the_server_goes_on() {
    in_namespaces("AF_XDP overload", || {
        enter_namespace();
        let ((goes, go), (tells, sent)) = (channel(), channel());
        let client = Host::start(2, move || {
            let to = "10.77.0.1:7000";
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            for _ in 0..BURST {
                socket.send_to(&[0; 32], to).expect("sent");
            }
            tells.send(()).expect("the test waits");
            go.recv().expect("the test polls");
            ask(to.parse().expect("an address"), 1, 100, 32);
        });
        wire(&client);
        let mut served = Served::open(1, Steering::Flow);
        client.begin();
        // No thread polls until all of the burst has come.
        sent.recv().expect("the burst");
        let begun = Instant::now();
        let has_come = || served.rxs[0].dropped() as usize + served.rxs[0].backlog_hint() >= BURST;
        while !has_come() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        // No frame is free until the burst is answered: what came before that would be dropped too.
        let mut received = 0;
        while received + (served.rxs[0].dropped() as usize) < BURST {
            assert!(begun.elapsed() < Duration::from_secs(60));
            received += served.echo(0, &mut Vec::with_capacity(64));
        }
        // The kernel gets the frames of the last answers back.
        served.echo(0, &mut Vec::with_capacity(64));
        let (counts, ()) = echo_while(&mut served, || {
            goes.send(()).expect("the client waits");
            client.end();
        });
        let dropped = served.rxs[0].dropped() as usize;
        assert_eq!(counts[0], 100);
        assert_eq!(received + dropped, BURST);
        assert!(dropped > 1000, "{dropped}");
    });
}

#[test]
fn a_wait_ends_with_a_packet_a_wake_or_its_time() {
    in_namespaces("AF_XDP wait", || {
        enter_namespace();
        let client = Host::start(2, || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            std::thread::sleep(Duration::from_millis(100));
            socket.send_to(&[0; 32], "10.77.0.1:7000").expect("sent");
        });
        wire(&client);
        let mut served = Served::open(2, "byte=0".parse().expect("a steering"));
        const FOREVER_NS: u64 = 3_600_000_000_000;
        client.begin();
        served.rxs[0].wait(FOREVER_NS);
        assert_eq!(served.rxs[0].backlog_hint(), 1);
        client.end();
        assert_eq!(served.rxs[1].backlog_hint(), 0);
        let waker = Arc::clone(&served.rxs[1]);
        let waking = std::thread::spawn(move || waker.wake());
        served.rxs[1].wait(FOREVER_NS);
        waking.join().expect("it wakes");
        served.rxs[1].wait(1);
        let mut out = Vec::new();
        let taken = served.rxs[0].poll(
            0,
            &mut Scratch::None,
            &served.pool,
            &mut served.free,
            &mut out,
            8,
        );
        assert_eq!(taken, 1);
        out.into_iter().for_each(|slot| served.free.give(slot));
    });
}

#[test]
fn what_is_refused_says_what_to_do_and_leaves_nothing_behind() {
    in_namespaces("what AF_XDP refuses", || {
        enter_namespace();
        let client = Host::start(2, || ());
        let said = |config| {
            let error = XskDatapath::open(config).expect_err("refused");
            error.to_string()
        };
        let nowhere = XskConfig {
            device: "e9".into(),
            ..config(PORT, Steering::Flow)
        };
        assert!(said(nowhere).starts_with("there is no device e9: `ip link`"));
        let device = client.wire();
        shell(&format!(
            "ip link set dev {device} addrgenmode none; ip address flush dev {device}"
        ));
        assert!(said(config(PORT, Steering::Flow)).starts_with("device p2 has no IP address"));
        shell("ip address add 10.77.0.1/24 dev p2");
        let taken = UdpSocket::bind("10.77.0.1:7000").expect("the port");
        assert!(said(config(PORT, Steering::Flow)).starts_with("port 7000 of p2 is in use"));
        drop(taken);
        let first = XskDatapath::open(config(PORT, Steering::Flow)).expect("AF_XDP");
        assert!(said(config(PORT, Steering::Flow)).starts_with("port 7000 of p2 is in use"));
        let first = Box::new(first).split(1, 1).expect("sockets");
        let second = XskDatapath::open(config(0, Steering::Flow)).expect("another port");
        assert_ne!(second.port(), 0);
        let error = Box::new(second)
            .split(1, 1)
            .expect_err("the queue is the first one's");
        assert!(
            error
                .to_string()
                .starts_with("queue 0 of p2 has an AF_XDP socket"),
            "{error}"
        );
        drop(first);
        let begun = Instant::now();
        while shell("ip -details link show dev p2").contains("xdp") {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        // Reopened at once, since the kernel may still hold the queue for a moment.
        let again = XskDatapath::open(config(PORT, Steering::Flow)).expect("AF_XDP");
        drop(Box::new(again).split(2, 3).expect("sockets"));
        client.begin();
        client.end();
    });
}

#[test]
fn frames_for_hosts_behind_the_device_come_to_its_port() {
    in_namespaces("AF_XDP port", || {
        enter_namespace();
        let host = HostAddress {
            mac: MacAddress([2, 0, 0, 0, 9, 9]),
            ip: [10, 77, 0, 9].into(),
        };
        let client = Host::start(2, || {
            // The host behind the device answers this one; the kernel answers the other.
            assert_refused("10.77.0.1:7000");
            shell("ip neigh add 10.77.0.8 lladdr 02:00:00:00:09:09 dev e0");
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            socket.send_to(b"to the host", "10.77.0.8:9").expect("sent");
            // The sender asks by ARP first, and gets an answer.
            let begun = Instant::now();
            while !shell("ip neigh show 10.77.0.9").contains("02:00:00:00:09:09") {
                socket.send_to(b"who are you", "10.77.0.9:9").expect("sent");
                assert!(begun.elapsed() < Duration::from_secs(60));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        wire(&client);
        let mut port = XskPort::open("p2").expect("AF_XDP");
        port.add_host(host).expect("room for a host");
        client.begin();
        let (mut frames, mut asked) = (Vec::new(), None);
        let begun = Instant::now();
        while !client.is_finished() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{frames:?}");
            port.wait(None, 10_000_000);
            port.receive(64, |frame| {
                if frame[12..14] == [8, 6] {
                    asked = Some(frame.to_vec());
                } else {
                    frames.push(frame.to_vec());
                }
            });
            if let Some(question) = asked.take() {
                port.send(|frame| arp_reply(&question, host, frame))
                    .expect("a frame");
                port.flush().expect("sent");
            }
        }
        client.end();
        let is_one = |frame: &Vec<u8>| frame[..6] == host.mac.0 && frame.ends_with(b"to the host");
        assert!(frames.iter().any(is_one), "{frames:?}");
        assert!(frames.iter().all(|frame| frame[..6] == host.mac.0));
        assert_eq!(port.dropped(), 0);
        port.remove_host(host);
    });
}

fn arp_reply(question: &[u8], host: HostAddress, to: &mut [u8]) -> Option<usize> {
    let frame = to.get_mut(..42)?;
    frame[..6].copy_from_slice(&question[6..12]);
    frame[6..12].copy_from_slice(&host.mac.0);
    frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    frame[22..28].copy_from_slice(&host.mac.0);
    frame[28..32].copy_from_slice(&host.ip.octets());
    frame[32..42].copy_from_slice(&question[22..32]);
    Some(42)
}

/// Behind a driver without XDP the kernel merges TCP's packets first, and a merged one fits no frame.
#[test]
fn a_device_whose_packets_are_merged_before_the_program_is_refused() {
    in_namespaces("AF_XDP behind GRO", || {
        enter_namespace();
        shell(
            "ip link add d0 type bridge; ip address add 10.78.0.1/24 dev d0; ip link set dev d0 up; ethtool -K d0 gro on",
        );
        let said = XskPort::open("d0").expect_err("merged").to_string();
        assert!(said.contains("`ethtool -K d0 gro off`"), "{said}");
        assert!(!shell("ip -details link show dev d0").contains("prog/xdp"));
        shell("ethtool -K d0 gro off");
        let port = XskPort::open("d0").expect("a device as it must be");
        assert!(!port.is_in_driver());
    });
}

#[test]
fn a_device_is_watched_for_what_it_must_keep() {
    in_namespaces("AF_XDP device watch", || {
        enter_namespace();
        shell(
            "ip link add d0 type bridge; ip address add 10.78.0.1/24 dev d0; ip link set dev d0 up",
        );
        let datapath = XskDatapath::open(XskConfig {
            device: "d0".into(),
            port: PORT,
            steering: Steering::Flow,
        });
        let watch = datapath.expect("AF_XDP").watch();
        watch.check().expect("as it was");
        shell("ip link set dev d0 mtu 1770");
        watch.check().expect("a frame still holds every packet");
        shell("ip link set dev d0 mtu 1771");
        let said = watch.check().expect_err("a longer MTU").to_string();
        assert!(said.contains("has an MTU of 1771, and had 1500"), "{said}");
        shell("ip link set dev d0 mtu 1500");
        watch.check().expect("set back");
        shell("ip link set dev d0 address 02:00:00:00:00:77");
        let said = watch.check().expect_err("another address").to_string();
        assert!(
            said.contains("has the Ethernet address 02:00:00:00:00:77"),
            "{said}"
        );
        // Another device of the same name is not the same device.
        shell("ip link delete dev d0; ip link add d0 type bridge; ip link set dev d0 up");
        let said = watch.check().expect_err("removed").to_string();
        assert!(said.contains("device d0 was removed"), "{said}");
    });
}
