//! The stack of an application: addresses, sockets, polling, time.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Waker;
use std::time::{Duration, Instant};

use headway_rings::lane::LaneEnds;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, IpEndpoint, Ipv4Cidr};

use crate::device::{LaneCounts, LaneDevice};
use crate::threads::ThreadParking;

/// The configuration of a stack.
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
    /// The longest packet without its Ethernet header.
    pub mtu: usize,
    /// Bytes of each of a socket's two buffers. TCP receives into at most 65,535 of them, which is its window without scaling.
    pub buffer_bytes: usize,
    /// The seed of chosen ports and sequence numbers.
    pub seed: u64,
}

/// All ports that the system chooses from are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPort;

impl From<NoPort> for io::Error {
    fn from(_: NoPort) -> Self {
        io::Error::new(
            io::ErrorKind::AddrInUse,
            "no port is free: close some sockets",
        )
    }
}

/// TCP and UDP over an application's lanes, for threads `T`.
pub struct NetStack<T> {
    core: Mutex<StackCore>,
    threads: T,
    /// Called after the stack wrote packets into the lanes.
    bell: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The state under the lock.
pub(crate) struct StackCore {
    iface: Interface,
    device: LaneDevice,
    pub(crate) sockets: SocketSet<'static>,
    /// Connections that were dropped, which finish closing without an owner.
    orphans: Vec<SocketHandle>,
    ports: Ports,
    begun: Instant,
    /// The count of sent packets at the last ring of the bell.
    told_sent: u64,
    pub(crate) buffer_bytes: usize,
    ip: Ipv4Addr,
}

/// The lock, held.
pub(crate) struct LockedCore<'a, T: ThreadParking> {
    core: MutexGuard<'a, StackCore>,
    /// Ends after the lock is given back.
    _section: T::Section,
}

impl<T: ThreadParking> Deref for LockedCore<'_, T> {
    type Target = StackCore;

    fn deref(&self) -> &StackCore {
        &self.core
    }
}

impl<T: ThreadParking> DerefMut for LockedCore<'_, T> {
    fn deref_mut(&mut self) -> &mut StackCore {
        &mut self.core
    }
}

/// Ports in use.
struct Ports {
    udp: HashSet<u16>,
    tcp: HashSet<u16>,
    next: u16,
}

/// The protocol that uses a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// The first of the ports that the stack chooses.
const FIRST_CHOSEN: u16 = 49152;
/// The largest window that TCP can announce to the byte. A scaled window is rounded down, so that its end may move back by a few bytes that the peer has sent
/// (RFC 7323, 2.4). At a window of 0 smoltcp then ignores all acknowledgements behind those bytes: two sides that wait for room would wait for ever.
const MOST_WINDOW_BYTES: usize = 65_535;
/// The interval at which a flushing thread checks for the end of connections.
const FLUSH_LOOK: Duration = Duration::from_millis(1);
/// The time after which a connection without an owner is aborted.
const ORPHAN_TIMEOUT: time::Duration = time::Duration::from_secs(60);

impl<T: ThreadParking> NetStack<T> {
    /// A stack over these lanes, one for each kthread.
    ///
    /// # Panics
    /// If there is no lane, or the prefix is above 32.
    #[must_use]
    pub fn new(config: &StackConfig, lanes: Vec<LaneEnds>, threads: T) -> Arc<Self> {
        assert!(!lanes.is_empty(), "a stack needs a lane");
        let mut device = LaneDevice::new(lanes, config.mtu);
        let address = HardwareAddress::Ethernet(EthernetAddress(config.mac));
        let mut settings = Config::new(address);
        settings.random_seed = config.seed;
        let mut iface = Interface::new(settings, &mut device, time::Instant::ZERO);
        iface.update_ip_addrs(|addresses| {
            let own = IpCidr::Ipv4(Ipv4Cidr::new(config.ip, config.prefix));
            // The list has room for one address.
            let _ = addresses.push(own);
        });
        if let Some(gateway) = config.gateway {
            let _ = iface.routes_mut().add_default_ipv4_route(gateway);
        }
        let span = u64::from(u16::MAX - FIRST_CHOSEN) + 1;
        Arc::new(Self {
            core: Mutex::new(StackCore {
                iface,
                device,
                sockets: SocketSet::new(Vec::new()),
                orphans: Vec::new(),
                ports: Ports {
                    udp: HashSet::new(),
                    tcp: HashSet::new(),
                    next: FIRST_CHOSEN + (config.seed % span) as u16,
                },
                begun: Instant::now(),
                told_sent: 0,
                buffer_bytes: config.buffer_bytes,
                ip: config.ip,
            }),
            threads,
            bell: OnceLock::new(),
        })
    }

    /// Calls `bell` whenever packets were written into the lanes, for a data plane that may sleep. The first bell stays.
    pub fn ring(&self, bell: impl Fn() + Send + Sync + 'static) {
        let _ = self.bell.set(Box::new(bell));
    }

    /// Takes the packets of the lanes, sends the due ones, and wakes the threads that waited for either. Returns whether there were any. Returns at once when
    /// another thread is polling.
    ///
    /// Kthreads call it when they have nothing to run, and at intervals.
    pub fn poll(&self) -> bool {
        self.poll_by(|| self.threads.kthread())
    }

    /// As [`poll`](Self::poll), sending by the lane of this kthread.
    pub(crate) fn poll_by(&self, kthread: impl FnOnce() -> usize) -> bool {
        let _section = self.threads.enter_section();
        let Some(mut core) = self.try_lock() else {
            return false;
        };
        let found = core.poll(kthread());
        let has_sent = core.has_sent();
        drop(core);
        self.ring_after(has_sent);
        found
    }

    /// Whether a packet waits in a lane. `false` while another thread holds the stack, since that thread takes the packet.
    pub fn has_packet(&self) -> bool {
        let _section = self.threads.enter_section();
        self.try_lock()
            .is_some_and(|mut core| core.device.has_packet())
    }

    /// As [`idle_for`](Self::idle_for), without waiting for another thread that has the stack, and `None` meanwhile.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        let _section = self.threads.enter_section();
        self.try_lock()?.due_in()
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, StackCore>> {
        match self.core.try_lock() {
            Ok(core) => Some(core),
            Err(TryLockError::Poisoned(core)) => Some(core.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn ring_after(&self, has_sent: bool) {
        if has_sent && let Some(bell) = self.bell.get() {
            bell();
        }
    }

    /// The time until something is due, unless a packet comes first; `None` if nothing is.
    #[must_use]
    pub fn idle_for(&self) -> Option<Duration> {
        let mut core = self.locked();
        if core.device.has_packet() {
            return Some(Duration::ZERO);
        }
        core.due_in()
    }

    /// Waits until the peers have acknowledged all data and ends of dropped connections, and the data plane has taken every packet. Waits at most for
    /// `patience`, and returns whether that happened.
    ///
    /// Call it before the process ends, which loses unsent and unacknowledged data. Another thread must keep polling meanwhile.
    #[must_use]
    pub fn flush(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        while self.locked().owes_anything() {
            let Some(left) = patience.checked_sub(begun.elapsed()) else {
                return false;
            };
            self.threads.park(Some(left.min(FLUSH_LOOK)));
        }
        true
    }

    /// Counts of the application's packets by fate.
    #[must_use]
    pub fn counts(&self) -> LaneCounts {
        self.locked().device.counts
    }

    pub(crate) fn locked(&self) -> LockedCore<'_, T> {
        let section = self.threads.enter_section();
        LockedCore {
            core: self.core.lock().unwrap_or_else(PoisonError::into_inner),
            _section: section,
        }
    }

    /// Changes sockets, and sends the packets that result.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut StackCore) -> R) -> R {
        let mut core = self.locked();
        let result = change(&mut core);
        core.poll(self.threads.kthread());
        let has_sent = !self.threads.is_polled_after() && core.has_sent();
        drop(core);
        self.ring_after(has_sent);
        result
    }

    /// Blocks until `attempt` has a result. It gets this thread's waker, and registers it when it has no result.
    pub(crate) fn wait<R>(
        &self,
        mut attempt: impl FnMut(&mut StackCore, &Waker) -> Option<R>,
    ) -> R {
        let waker = self.threads.waker();
        loop {
            let done = self.change(|core| {
                core.poll(self.threads.kthread());
                attempt(core, &waker)
            });
            match done {
                Some(result) => return result,
                None => self.threads.park(None),
            }
        }
    }
}

impl StackCore {
    fn now(&self) -> time::Instant {
        let elapsed = self.begun.elapsed().as_micros();
        time::Instant::from_micros(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    /// Whether packets were written into the lanes since the last call.
    fn has_sent(&mut self) -> bool {
        let sent = self.device.counts.sent;
        std::mem::replace(&mut self.told_sent, sent) != sent
    }

    /// The time until something is due, unless a packet comes first; `None` if nothing is.
    fn due_in(&mut self) -> Option<Duration> {
        let now = self.now();
        let Self { iface, sockets, .. } = self;
        let delay = iface.poll_delay(now, sockets)?;
        Some(Duration::from_micros(delay.total_micros()))
    }

    fn poll(&mut self, kthread: usize) -> bool {
        let now = self.now();
        self.device.leave_by(kthread);
        let before = self.device.counts;
        let result = self.iface.poll(now, &mut self.device, &mut self.sockets);
        self.bury();
        result == PollResult::SocketStateChanged || self.device.counts != before
    }

    /// Removes connections without an owner that have ended.
    fn bury(&mut self) {
        let Self {
            orphans, sockets, ..
        } = self;
        orphans.retain(|&handle| {
            let is_over = sockets.get::<tcp::Socket<'_>>(handle).state() == tcp::State::Closed;
            if is_over {
                sockets.remove(handle);
            }
            !is_over
        });
    }

    /// Whether a connection without an owner has unacknowledged data or an unacknowledged end, or a packet waits in a lane.
    fn owes_anything(&self) -> bool {
        let mut orphans = self.orphans.iter();
        let owes = orphans.any(|&handle| {
            let socket = self.sockets.get::<tcp::Socket<'_>>(handle);
            match socket.state() {
                // The peer has not acknowledged the end yet.
                tcp::State::FinWait1 | tcp::State::Closing | tcp::State::LastAck => true,
                _ => socket.send_queue() > 0,
            }
        });
        owes || self.device.has_unsent()
    }

    /// Closes a connection whose owner dropped it; it finishes by itself.
    pub(crate) fn orphan(&mut self, handle: SocketHandle) {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        if socket.recv_queue() > 0 {
            // Unread data is lost with the owner, and a reset tells the peer so (RFC 2525, 2.17).
            socket.abort();
        } else {
            socket.close();
        }
        socket.set_timeout(Some(ORPHAN_TIMEOUT));
        self.orphans.push(handle);
    }

    /// A new socket of TCP.
    pub(crate) fn add_tcp(&mut self) -> SocketHandle {
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let received = buffer(self.buffer_bytes.min(MOST_WINDOW_BYTES));
        let mut socket = tcp::Socket::new(received, buffer(self.buffer_bytes));
        socket.set_congestion_control(tcp::CongestionControl::Cubic);
        // Requests and responses are written whole, so Nagle's algorithm would only delay them.
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    pub(crate) fn connect(
        &mut self,
        handle: SocketHandle,
        to: SocketAddrV4,
        port: u16,
    ) -> Result<(), tcp::ConnectError> {
        let to = IpEndpoint::from((*to.ip(), to.port()));
        let Self { iface, sockets, .. } = self;
        let socket = sockets.get_mut::<tcp::Socket<'_>>(handle);
        socket.connect(iface.context(), to, port)
    }

    /// Takes a port; 0 lets the stack choose.
    pub(crate) fn take_port(&mut self, transport: Transport, port: u16) -> io::Result<u16> {
        let Ports { udp, tcp, next } = &mut self.ports;
        let used = match transport {
            Transport::Tcp => tcp,
            Transport::Udp => udp,
        };
        if port != 0 {
            if !used.insert(port) {
                let what = format!(
                    "another socket of this application has port {port}: close it, or choose another port"
                );
                return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
            }
            return Ok(port);
        }
        for _ in FIRST_CHOSEN..=u16::MAX {
            let candidate = *next;
            *next = candidate.checked_add(1).unwrap_or(FIRST_CHOSEN);
            if used.insert(candidate) {
                return Ok(candidate);
            }
        }
        Err(NoPort.into())
    }

    pub(crate) fn give_port(&mut self, transport: Transport, port: u16) {
        match transport {
            Transport::Tcp => self.ports.tcp.remove(&port),
            Transport::Udp => self.ports.udp.remove(&port),
        };
    }

    /// An address of this application.
    pub(crate) fn own(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip, port)
    }
}

impl<T> fmt::Debug for NetStack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetStack").finish_non_exhaustive()
    }
}
