//! The stack of an application: addresses, polling, time.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use headway_rings::lane::{LaneEnds, MOST_PACKET_BYTES};

use crate::datagrams::UdpPorts;
use crate::ip::control::{on_arp, on_icmp, on_icmp_v6};
use crate::ip::egress::Egress;
use crate::ip::neighbours::{Neighbours, PacketOrigins};
use crate::ip::packet::{
    ETHERNET_BYTES, EthernetFrame, IpPacket, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP,
    PROTOCOL_UDP, TYPE_ARP, TYPE_IPV4, TYPE_IPV6,
};
use crate::ip::{OwnAddresses, is_host};
use crate::lanes::{LaneCounts, Lanes};
use crate::ports::TcpPorts;
use crate::tcp::connection::TcpSettings;
use crate::tcp::flow::{FlowKey, FlowSecrets};
use crate::tcp::segment::SegmentHeader;
use crate::tcp::table::TcpTable;
use crate::threads::ThreadParking;

/// The configuration of a stack. [`StackConfig::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct StackConfig {
    /// The application's Ethernet address.
    pub mac: [u8; 6],
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// The length of the network prefix, 0 to 32 bits.
    pub prefix: u8,
    /// The gateway to other networks, if there is one.
    pub gateway: Option<Ipv4Addr>,
    /// Its IPv6 address, if it has one.
    pub ip6: Option<Ipv6Addr>,
    /// The length of the IPv6 network prefix, 0 to 128 bits.
    pub prefix6: u8,
    /// The gateway to other networks of IPv6, if there is one.
    pub gateway6: Option<Ipv6Addr>,
    /// The longest packet without its Ethernet header.
    pub mtu: usize,
    /// The most bytes of each of a socket's two buffers, which grow with their content: at least 1024. A UDP socket has room for a whole packet in any case.
    pub buffer_bytes: usize,
    /// The time in which a peer must acknowledge something while there is something to acknowledge. Then the connection has failed: [`io::ErrorKind::TimedOut`].
    pub user_timeout: Duration,
    /// The silence after which an idle peer is asked whether it is there; without an answer within 5 s the connection has failed. `None` never asks, so that a
    /// reader waits for a peer that vanished for ever.
    pub keep_alive: Option<Duration>,
    /// The secret from which chosen ports, sequence numbers and cookies derive. Draw all 128 bits at random: whoever knows it can forge segments.
    pub seed: [u64; 2],
}

impl StackConfig {
    /// A configuration without gateway and IPv6: packets of up to 1,500 bytes, buffers of 64 KiB, a user timeout of 100 s (RFC 9293's least), no keep-alive.
    #[must_use]
    pub fn new(mac: [u8; 6], ip: Ipv4Addr, prefix: u8, seed: [u64; 2]) -> Self {
        Self {
            mac,
            ip,
            prefix,
            gateway: None,
            ip6: None,
            prefix6: 64,
            gateway6: None,
            mtu: 1500,
            buffer_bytes: 64 << 10,
            user_timeout: Duration::from_secs(100),
            keep_alive: None,
            seed,
        }
    }
}

/// A table of flows and the time at which something is due in it.
struct FlowShard {
    table: Mutex<TcpTable>,
    due_ns: AtomicU64,
}

/// TCP and UDP over an application's lanes, for threads `T`.
pub struct NetStack<T> {
    own: OwnAddresses,
    lanes: Lanes,
    neighbours: Neighbours,
    origins: PacketOrigins,
    shards: Box<[FlowShard]>,
    secrets: FlowSecrets,
    pub(crate) tcp_ports: TcpPorts,
    pub(crate) udp: UdpPorts,
    begun: Instant,
    pub(crate) buffer_bytes: usize,
    pub(crate) threads: T,
    /// The silent losses that a flush has told.
    told_losses: AtomicU64,
    /// Called after the stack wrote packets into the lanes.
    bell: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Where a connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionPlace {
    pub(crate) shard: usize,
    pub(crate) id: u32,
}

/// The tables for each lane: two kthreads rarely want the same.
const SHARDS_PER_LANE: usize = 4;
/// The interval at which a flushing thread checks for the end of connections.
const FLUSH_LOOK: Duration = Duration::from_millis(1);
/// The least time that a thread sleeps which polls for itself: what waits for room in a lane is due at once.
const LEAST_PARK: Duration = Duration::from_micros(100);
/// No time.
const NEVER_NS: u64 = u64::MAX;

/// A duration in nanoseconds; more than 584 years are as many.
pub(crate) fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<T: ThreadParking> NetStack<T> {
    /// A stack over these lanes, one for each kthread.
    ///
    /// # Panics
    /// If there is no lane, or a prefix is above 32 or, of IPv6, 128.
    #[must_use]
    pub fn new(config: &StackConfig, lanes: Vec<LaneEnds>, threads: T) -> Arc<Self> {
        assert!(!lanes.is_empty(), "a stack needs a lane");
        assert!(config.prefix <= 32 && config.prefix6 <= 128, "a prefix");
        let mtu = config.mtu.min(MOST_PACKET_BYTES - ETHERNET_BYTES);
        let settings = TcpSettings {
            buffer_bytes: config.buffer_bytes.clamp(1024, 1 << 29),
            mtu,
            user_timeout_ns: as_ns(config.user_timeout).max(1),
            keep_alive_ns: config.keep_alive.map(as_ns),
        };
        let secrets = FlowSecrets::new(config.seed);
        let shards = (lanes.len() * SHARDS_PER_LANE).next_power_of_two();
        let shard = |_| FlowShard {
            table: Mutex::new(TcpTable::new(settings, secrets)),
            due_ns: AtomicU64::new(NEVER_NS),
        };
        Arc::new(Self {
            own: OwnAddresses {
                mac: config.mac,
                ip: config.ip,
                prefix: config.prefix,
                gateway: config.gateway,
                ip6: config.ip6,
                prefix6: config.prefix6,
                gateway6: config.gateway6,
                mtu,
            },
            lanes: Lanes::new(lanes),
            neighbours: Neighbours::default(),
            origins: PacketOrigins::new(),
            shards: (0..shards).map(shard).collect(),
            secrets,
            tcp_ports: TcpPorts::new(&secrets),
            udp: UdpPorts::new(&secrets),
            begun: Instant::now(),
            buffer_bytes: settings.buffer_bytes,
            threads,
            told_losses: AtomicU64::new(0),
            bell: OnceLock::new(),
        })
    }

    /// Calls `bell` whenever packets were written into the lanes, for a data plane that may sleep. The first bell stays.
    pub fn ring(&self, bell: impl Fn() + Send + Sync + 'static) {
        let _ = self.bell.set(Box::new(bell));
    }

    /// Takes the packets of the lanes, sends the due ones, and wakes the threads that waited for either. Returns whether there were any. Leaves lanes alone
    /// that another thread is polling.
    ///
    /// Kthreads call it when they have nothing to run, and at intervals.
    pub fn poll(&self) -> bool {
        self.poll_by(|| self.threads.kthread())
    }

    /// As [`poll`](Self::poll), sending by the lane of this kthread.
    pub(crate) fn poll_by(&self, kthread: impl FnOnce() -> usize) -> bool {
        let _section = self.threads.enter_section();
        let found = self.poll_lanes(kthread());
        self.ring_after();
        found
    }

    fn poll_lanes(&self, kthread: usize) -> bool {
        // Once for all packets: reading the clock costs as much as parsing one.
        let now_ns = self.now_ns();
        let found = self.lanes.receive(kthread, |frame| {
            if self.on_frame(frame, kthread, now_ns).is_none() {
                let ignored = &self.lanes.counters.ignored;
                ignored.fetch_add(1, Ordering::Relaxed);
            }
        });
        self.poll_timers(kthread, now_ns) || found
    }

    fn poll_timers(&self, kthread: usize, now_ns: u64) -> bool {
        let mut did = false;
        for at in 0..self.shards.len() {
            if self.shards[at].due_ns.load(Ordering::Relaxed) <= now_ns {
                did |= self.with_table(at, kthread, now_ns, |table, now_ns, egress| {
                    table.poll(now_ns, egress)
                });
            }
        }
        while let Some(ip) = self.neighbours.next_to_ask(now_ns) {
            self.egress(kthread, now_ns).ask(ip);
        }
        self.udp
            .wake_senders(|| self.lanes.sender(kthread).has_room());
        did
    }

    /// Whether a packet waits in a lane. `false` while another thread is taking packets from it.
    pub fn has_packet(&self) -> bool {
        let _section = self.threads.enter_section();
        self.lanes.has_packet()
    }

    /// The time until something is due, unless a packet comes first; `None` if nothing is.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        let now_ns = self.now_ns();
        let shards = self.shards.iter();
        let due_ns = shards
            .map(|shard| shard.due_ns.load(Ordering::Relaxed))
            .min();
        let due_ns = due_ns.filter(|due_ns| *due_ns != NEVER_NS);
        let tcp = due_ns.map(|due_ns| due_ns.saturating_sub(now_ns));
        let udp = self.udp.has_waiting_senders().then_some(0);
        let times = [tcp, udp, self.neighbours.due_in_ns()];
        times.into_iter().flatten().min().map(Duration::from_nanos)
    }

    /// The time until something is due, unless a packet comes first; `None` if nothing is.
    #[must_use]
    pub fn idle_for(&self) -> Option<Duration> {
        if self.has_packet() {
            return Some(Duration::ZERO);
        }
        self.due_in()
    }

    /// Waits until the peers have acknowledged all data and ends of dropped connections, and the data plane has taken every packet. Waits at most for
    /// `patience`, and returns whether that happened. `false` also if a dropped connection ended early, by a reset or a timeout, since the last call that did
    /// not run out of patience: its peer will acknowledge nothing more. A connection whose owner got that error from a read or a write does not count.
    ///
    /// Call it before the process ends, which loses unsent and unacknowledged data. Another thread must keep polling meanwhile.
    #[must_use]
    pub fn flush(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        let told = self.told_losses.load(Ordering::Relaxed);
        while self.owes_anything() {
            let Some(left) = patience.checked_sub(begun.elapsed()) else {
                return false;
            };
            self.threads.park(Some(left.min(FLUSH_LOOK)));
        }
        // Counted by now: a connection that owes nothing more has either paid or is lost.
        let lost = self.silent_losses();
        self.told_losses.fetch_max(lost, Ordering::Relaxed);
        lost == told
    }

    fn silent_losses(&self) -> u64 {
        let _section = self.threads.enter_section();
        let losses = |shard: &FlowShard| {
            let table = shard.table.lock().unwrap_or_else(PoisonError::into_inner);
            table.silent_losses()
        };
        self.shards.iter().map(losses).sum()
    }

    fn owes_anything(&self) -> bool {
        let _section = self.threads.enter_section();
        let owes = |shard: &FlowShard| {
            let table = shard.table.lock().unwrap_or_else(PoisonError::into_inner);
            table.owes_anything()
        };
        self.shards.iter().any(owes) || self.lanes.has_unsent() || self.neighbours.has_waiting()
    }

    /// Counts of the application's packets by fate.
    #[must_use]
    pub fn counts(&self) -> LaneCounts {
        LaneCounts {
            unreachable: self.neighbours.lost_frames(),
            ..self.lanes.counts()
        }
    }

    /// Connections that are open, and those in TIME-WAIT.
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        let _section = self.threads.enter_section();
        self.shards.iter().fold((0, 0), |(open, waiting), shard| {
            let table = shard.table.lock().unwrap_or_else(PoisonError::into_inner);
            let counts = table.counts();
            (open + counts.0, waiting + counts.1)
        })
    }

    fn now_ns(&self) -> u64 {
        as_ns(self.begun.elapsed())
    }

    /// The longest datagram to an address.
    pub(crate) fn most_payload(&self, to: IpAddr, header_bytes: usize) -> usize {
        let headers = crate::ip::packet::header_bytes(to) + header_bytes;
        self.own.mtu.saturating_sub(headers)
    }

    /// The own address from which packets go to a host.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an address or a port that is nobody's or an address of this stack, [`io::ErrorKind::AddrNotAvailable`] for a
    /// family that this stack has no address of.
    pub(crate) fn own_for(&self, to: SocketAddr) -> io::Result<IpAddr> {
        if !is_host(to.ip()) || to.port() == 0 {
            let what = format!("{to} is no address of a host and a port");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if self.own.is_own(to.ip()) {
            let what = format!(
                "{to} is this stack's own address, and what it sends there comes back to nobody: hand it over inside the program"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.own.of_family(to.ip()).ok_or_else(|| {
            let what = format!("{to}: the stack has no IPv6 address; set `ip6`");
            io::Error::new(io::ErrorKind::AddrNotAvailable, what)
        })
    }

    /// The own IPv4 address and a port.
    pub(crate) fn own(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.own.ip.into(), port)
    }

    fn egress(&self, kthread: usize, now_ns: u64) -> Egress<'_> {
        Egress::new(&self.own, &self.neighbours, &self.lanes, kthread, now_ns)
    }

    /// Calls `send` with the way out of the current kthread, and rings the bell.
    pub(crate) fn with_egress<R>(&self, send: impl FnOnce(&mut Egress<'_>) -> R) -> R {
        let _section = self.threads.enter_section();
        let result = send(&mut self.egress(self.threads.kthread(), self.now_ns()));
        self.ring_unless_polled();
        result
    }

    pub(crate) fn shard_of(&self, key: &FlowKey) -> usize {
        self.shard_by(self.secrets.flow_hash(key))
    }

    /// The table of a flow, by the flow's hash.
    fn shard_by(&self, hash: u64) -> usize {
        hash as usize & (self.shards.len() - 1)
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Calls `act` with a table, the time and a way out, and notes when the table is due.
    fn with_table<R>(
        &self,
        at: usize,
        kthread: usize,
        now_ns: u64,
        act: impl FnOnce(&mut TcpTable, u64, &mut Egress<'_>) -> R,
    ) -> R {
        let shard = &self.shards[at];
        let mut table = shard.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = table.not_before(now_ns);
        let result = act(&mut table, now_ns, &mut self.egress(kthread, now_ns));
        let due_ns = table.next_ns().unwrap_or(NEVER_NS);
        shard.due_ns.store(due_ns, Ordering::Relaxed);
        result
    }

    /// Acts on a table for the current thread, and rings the bell.
    pub(crate) fn change<R>(
        &self,
        shard: usize,
        act: impl FnOnce(&mut TcpTable, u64, &mut Egress<'_>) -> R,
    ) -> R {
        let _section = self.threads.enter_section();
        let result = self.with_table(shard, self.threads.kthread(), self.now_ns(), act);
        self.ring_unless_polled();
        result
    }

    #[inline]
    fn ring_unless_polled(&self) {
        if !self.threads.is_polled_after() {
            self.ring_after();
        }
    }

    #[inline]
    fn ring_after(&self) {
        if let Some(bell) = self.bell.get()
            && self.lanes.has_sent()
        {
            bell();
        }
    }

    /// Blocks until `attempt` has a result. It gets this thread's waker, and registers it when it has no result.
    pub(crate) fn wait<R>(&self, attempt: impl FnMut(&Waker) -> Option<R>) -> R {
        let result = self.wait_until(None, attempt);
        result.expect("a wait without end has a result")
    }

    /// Blocks the current thread until `attempt` has a result, at most until a moment; then `None`. `attempt` gets this thread's waker: sockets call it when what
    /// they lacked comes.
    pub fn wait_until<R>(
        &self,
        until: Option<Instant>,
        mut attempt: impl FnMut(&Waker) -> Option<R>,
    ) -> Option<R> {
        let waker = self.threads.waker();
        loop {
            if let Some(result) = attempt(&waker) {
                return Some(result);
            }
            // It may be in the lanes.
            if self.poll()
                && let Some(result) = attempt(&waker)
            {
                return Some(result);
            }
            let left = match until {
                Some(until) => Some(until.checked_duration_since(Instant::now())?),
                None => None,
            };
            self.threads.park(self.park_time(left));
        }
    }

    /// The time to park. Kthreads that sleep do not know what this thread made due, so that one which is none of theirs polls for itself by then.
    fn park_time(&self, left: Option<Duration>) -> Option<Duration> {
        if self.threads.is_polled_after() {
            return left;
        }
        let due_in = self.due_in().map(|due_in| due_in.max(LEAST_PARK));
        left.into_iter().chain(due_in).min()
    }

    /// Takes a frame; `None` for one that is malformed or for nobody here.
    fn on_frame(&self, frame: &[u8], kthread: usize, now_ns: u64) -> Option<()> {
        let frame = EthernetFrame::parse(frame)?;
        if frame.to[0] & 1 == 0 && frame.to != self.own.mac {
            return None;
        }
        let egress = || self.egress(kthread, now_ns);
        let packet = match frame.kind {
            TYPE_ARP => {
                return on_arp(frame.content, &self.own, &self.neighbours, now_ns, egress);
            }
            TYPE_IPV4 => IpPacket::parse_v4(frame.content)?,
            TYPE_IPV6 => IpPacket::parse_v6(frame.content)?,
            _ => return None,
        };
        if packet.protocol == PROTOCOL_ICMPV6 && packet.source.is_ipv6() {
            let (own, neighbours) = (&self.own, &self.neighbours);
            return on_icmp_v6(&packet, frame.from, own, neighbours, now_ns, egress);
        }
        if !self.own.is_own(packet.destination) || !is_host(packet.source) {
            return None;
        }
        self.origins.came(packet.source, frame.from, || {
            let hop = self.own.next_hop(packet.source);
            hop.is_none_or(|hop| self.neighbours.doubt(hop, Some(frame.from), now_ns))
        });
        match packet.protocol {
            PROTOCOL_TCP => self.on_tcp(&packet, kthread, now_ns),
            PROTOCOL_UDP => {
                let overrun = &self.lanes.counters.overrun;
                self.udp.on_packet(&packet, overrun, egress)
            }
            PROTOCOL_ICMP => on_icmp(&packet, egress),
            _ => None,
        }
    }

    fn on_tcp(&self, packet: &IpPacket<'_>, kthread: usize, now_ns: u64) -> Option<()> {
        if !packet.has_right_checksum() {
            return None;
        }
        let (header, payload) = SegmentHeader::parse(packet.payload)?;
        let key = FlowKey {
            local_ip: packet.destination,
            remote_ip: packet.source,
            local_port: header.to_port,
            remote_port: header.from_port,
        };
        let hash = self.secrets.flow_hash(&key);
        let shard = self.shard_by(hash);
        self.with_table(shard, kthread, now_ns, |table, now_ns, egress| {
            table.on_segment((hash, &key), &header, payload, now_ns, egress);
        });
        Some(())
    }
}

impl<T> fmt::Debug for NetStack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetStack").finish_non_exhaustive()
    }
}
