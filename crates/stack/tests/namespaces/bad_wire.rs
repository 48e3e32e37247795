//! A device behind a wire that loses, reorders and duplicates frames, in both directions, as seen by applications of a daemon and by Linux.
#![expect(
    unsafe_code,
    reason = "a packet socket is bound to a device by an address that no crate wraps"
)]

use crate::bad_network::{BadCounts, BadNetwork, LinkEnd};
use crate::hosted::{DEVICE, HostedStage, asking, echoes_stream, until};
use crate::net::{ifindex, shell};
use crate::roles::RoleProcess;
use crate::{in_namespaces, pattern};
use headway_host::arbiter::NetworkReport;
use nix::libc;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use std::collections::HashSet;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Room for the frames that come while the wire's thread has no core. Only the wire shall lose frames.
const BUFFER: usize = 16 << 20;

/// All frames of a device.
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    pub(crate) fn open(device: &str) -> io::Result<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes no pointers. With protocol 0 the socket receives nothing before it is bound.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and no other value owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
        let ignore: libc::c_int = 1;
        // SAFETY: the kernel reads as many bytes as the value has.
        let ignored = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const ignore).cast(),
                size_of_val(&ignore) as libc::socklen_t,
            )
        };
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: ifindex(device) as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the kernel reads as many bytes as the address has.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if ignored != 0 || bound != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(socket))
    }
}

impl LinkEnd for PacketSocket {
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        let length = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).ok()?;
        Some(buffer[..length].to_vec())
    }

    fn put(&mut self, packet: &[u8]) {
        send(self.0.as_raw_fd(), packet, MsgFlags::empty()).expect("the device takes it");
    }
}

/// The thread of the wire between [`DEVICE`], behind which Linux is, and the daemon's device.
struct BadWire {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// By direction: from Linux, from the daemon.
    counts: Arc<Mutex<[BadCounts; 2]>>,
}

/// The daemon's device.
const BEHIND: &str = "b1";

impl BadWire {
    fn start() -> Self {
        shell(&format!(
            "for all in all default; do echo 1 > /proc/sys/net/ipv6/conf/$all/disable_ipv6; done
             ip link add b0 type veth peer name {BEHIND}
             for device in {DEVICE} b0 {BEHIND}; do
                 ip address flush dev $device
                 ethtool -K $device tx off gro off
                 ip link set $device up
             done"
        ));
        let ends = [DEVICE, "b0"].map(|device| vec![PacketSocket::open(device).expect("root")]);
        let mut network = BadNetwork::new(ends);
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Mutex::new(network.counts));
        let (stops, tells) = (Arc::clone(&stop), Arc::clone(&counts));
        let thread = std::thread::spawn(move || {
            while !stops.load(Ordering::Relaxed) {
                let moved = network.turn();
                *tells.lock().expect("nobody panics with it") = network.counts;
                if !moved {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        });
        Self {
            thread: Some(thread),
            stop,
            counts,
        }
    }

    fn counts(&self) -> [BadCounts; 2] {
        *self.counts.lock().expect("nobody panics with it")
    }
}

impl Drop for BadWire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            joined.expect("it runs").expect("it carries frames");
        }
    }
}

/// A daemon behind a bad wire, which is cut first.
struct WiredStage {
    wire: BadWire,
    _app: RoleProcess,
    stage: HostedStage,
}

impl WiredStage {
    /// With an application that answers.
    fn new() -> Self {
        let mut stage = HostedStage::without_daemon();
        stage.linux(|| shell("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"));
        let wire = BadWire::start();
        stage.start_daemon(BEHIND);
        let app = RoleProcess::start("echo", &stage.socket());
        // Before, frames for its address are the kernel's, and in no count.
        until("the application is there", || stage.app("kv").is_some());
        stage.linux(|| drop(asking()));
        Self {
            wire,
            _app: app,
            stage,
        }
    }

    /// Checks that each frame of the wire has one fate at the daemon, and each frame of the application came to the wire.
    fn assert_counted(&self) {
        let begun = Instant::now();
        loop {
            let [to, from] = self.wire.counts();
            let network = self.stage.network();
            let fates = network.delivered + network.lane_full + network.missed;
            if fates == u64::from(to.arrive()) && network.sent == u64::from(from.came) {
                break;
            }
            let seen = format!("{to:?} {from:?} {network:?}");
            assert!(begun.elapsed() < Duration::from_secs(60), "{seen}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let network = self.stage.network();
        let NetworkReport {
            unknown,
            device_full,
            spoofed,
            invalid,
            ..
        } = network;
        let lost = (unknown, device_full, spoofed, invalid);
        assert_eq!(lost, (0, 0, 0, 0), "{network:?}");
    }
}

#[test]
fn streams_through_the_daemon_are_exact_on_a_bad_wire() {
    in_namespaces("TCP through the daemon on a bad wire", || {
        let wired = WiredStage::new();
        wired.stage.linux(|| {
            std::thread::scope(|scope| {
                for connection in 0..3 {
                    scope.spawn(move || echoes_stream(700_000, connection));
                }
            });
        });
        let counts = wired.wire.counts();
        counts.into_iter().for_each(BadCounts::assert_bad);
        wired.assert_counted();
    });
}

/// Datagrams that an application echoes, over the wire.
struct EchoedDatagrams {
    socket: UdpSocket,
    counts: Arc<Mutex<[BadCounts; 2]>>,
    /// The wire's counts before the first.
    before: [BadCounts; 2],
    sent: u32,
    echoes: u32,
    distinct: HashSet<u32>,
}

impl EchoedDatagrams {
    /// The most under way, which neither a lane nor a socket loses.
    const WINDOW: i64 = 32;

    fn new(counts: Arc<Mutex<[BadCounts; 2]>>) -> Self {
        let socket = asking();
        socket.set_nonblocking(true).expect("it may");
        // The wire carries no question any more once its counts stand still.
        let now = || *counts.lock().expect("nobody panics with it");
        let mut before = now();
        until("the last question is answered", || {
            std::thread::sleep(Duration::from_millis(50));
            while socket.recv(&mut [0; 10]).is_ok() {}
            let counted = now();
            std::mem::replace(&mut before, counted) == counted
        });
        Self {
            socket,
            counts,
            before,
            sent: 0,
            echoes: 0,
            distinct: HashSet::new(),
        }
    }

    fn datagram(number: u32) -> Vec<u8> {
        let mut datagram = number.to_be_bytes().to_vec();
        datagram.extend(pattern(1 + number as usize % 1400, number));
        datagram
    }

    fn send(&mut self) {
        let datagram = Self::datagram(self.sent);
        self.socket.send(&datagram).expect("sent");
        self.sent += 1;
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2000];
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            let number = u32::from_be_bytes(*buffer.first_chunk().expect("four bytes"));
            assert!(number < self.sent && buffer[..bytes] == Self::datagram(number));
            self.distinct.insert(number);
            self.echoes += 1;
        }
    }

    /// The wire's counts of these datagrams and of their echoes.
    fn counts(&self) -> [BadCounts; 2] {
        let now = *self.counts.lock().expect("nobody panics with it");
        [0, 1].map(|way| now[way].since(self.before[way]))
    }

    /// The echoes that are still to come. It may be too low while the wire counts.
    fn under_way(&self) -> i64 {
        let more = |counts: BadCounts| i64::from(counts.twice) - i64::from(counts.lost);
        let copies: i64 = self.counts().map(more).into_iter().sum();
        i64::from(self.sent) + copies - i64::from(self.echoes)
    }

    /// Whether the wire had all datagrams, and an echo of each that arrived; and whether all echoes that arrived were received.
    fn are_all_counted(&self) -> bool {
        let [to, from] = self.counts();
        (to.came, from.came, self.echoes) == (self.sent, to.arrive(), from.arrive())
    }
}

#[test]
fn datagrams_through_the_daemon_are_counted_exactly_on_a_bad_wire() {
    in_namespaces("UDP through the daemon on a bad wire", || {
        const COUNT: u32 = 2000;
        let wired = WiredStage::new();
        let counts = Arc::clone(&wired.wire.counts);
        wired.stage.linux(move || {
            // From here on each frame is a datagram.
            shell("ip neigh replace 10.77.0.9 lladdr 02:00:0a:4d:00:09 dev e0");
            let mut datagrams = EchoedDatagrams::new(counts);
            for _ in 0..COUNT {
                datagrams.send();
                until("echoes come", || {
                    datagrams.receive();
                    datagrams.under_way() < EchoedDatagrams::WINDOW
                });
            }
            until("each datagram is counted", || {
                datagrams.receive();
                datagrams.are_all_counted()
            });
            std::thread::sleep(Duration::from_millis(20));
            datagrams.receive();
            assert!(datagrams.are_all_counted(), "no echo more");
            assert!(datagrams.distinct.len() < COUNT as usize, "some were lost");
            datagrams
                .counts()
                .into_iter()
                .for_each(BadCounts::assert_bad);
        });
        wired.assert_counted();
        assert_eq!(wired.stage.network().lane_full, 0);
    });
}
