//! UDP on a device's port, for one thread, which may also send first to named hosts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use headway_machine::thread::fork::ParentsOnly;
use headway_net::slot::Peer;
use headway_net::udp::Steering;
use headway_net::waker::Waker;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::device::{DeviceWatch, NetDevice};
use crate::error::XskError;
use crate::frame::{ResponseFrame, UdpEnd, parse};
use crate::links::{HostLinks, LinkTable, PeerLink};
use crate::program::{SteerConfig, SteerProgram, compile};
use crate::queue::{self, DeviceQueue, DeviceSockets};
use crate::reserve::{port_of, reserve};
use crate::rx::AttachedProgram;
use crate::socket::XskSocket;
use crate::tx::FrameSender;
use crate::umem::{FrameToken, ReceivedFrame, RxRing};

/// The most packets taken from a queue at once.
const BATCH: usize = 64;

/// A received datagram.
#[derive(Debug, Clone, Copy)]
pub struct PortDatagram<'a> {
    /// Its sender. The scope is the number of the link back to it: 0 for a host of [`HostLinks`].
    pub from: Peer,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// A UDP port of a device. ARP, neighbour discovery and everything to other ports are the kernel's.
pub struct XskUdpPort {
    receivers: Vec<BatchReceiver>,
    sender: XskUdpSender,
    named: Arc<HostLinks>,
    readable: Epoll,
    waker: Arc<Waker>,
    /// Datagrams with a wrong checksum, or from a sender without a return path.
    rejected: u64,
    address: SocketAddr,
    /// The attachment, which the port's drop ends.
    program: AttachedProgram,
}

struct BatchReceiver {
    ring: RxRing,
    batch: Vec<ReceivedFrame>,
    done: Vec<FrameToken>,
    queue: Arc<DeviceQueue>,
    socket: XskSocket,
}

/// Datagrams on their way out of an [`XskUdpPort`].
pub struct XskUdpSender {
    sender: FrameSender,
    links: LinkTable,
    device: NetDevice,
    port: u16,
    /// Frames written since the last call to the kernel.
    written: usize,
    unsent: u64,
}

impl XskUdpPort {
    /// Takes the port, opens the sockets and attaches the program; port 0 lets the system choose.
    ///
    /// # Errors
    /// [`XskError`], which names the remedy.
    pub fn open(device: &str, port: u16) -> Result<Self, XskError> {
        let device = NetDevice::find_reachable(device)?;
        let failed = |source| XskError::System {
            device: device.name.clone(),
            operation: "rings",
            source,
        };
        let object = compile()?;
        let reserved = reserve(&device, port)?;
        let port = port_of(&reserved).unwrap_or(port);
        let DeviceSockets { receivers, senders } = queue::open(&device, 1, 1)?;
        let config = SteerConfig {
            sockets: 1,
            port: Some(port),
            steering: Steering::Flow,
        };
        let mut program = SteerProgram::load(&object, &device, config)?;
        let readable = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let readable = readable.map_err(|errno| failed(errno.into()))?;
        let mut polled = Vec::new();
        for (place, end) in receivers.into_iter().flatten().enumerate() {
            program.set_socket(place as u32, end.socket.fd())?;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            let watched = readable.add(end.socket.fd(), event);
            watched.map_err(|errno| failed(errno.into()))?;
            let ring = end.rings.rx.ok_or(io::ErrorKind::InvalidData.into());
            polled.push(BatchReceiver {
                ring: ring.map_err(failed)?,
                batch: Vec::with_capacity(BATCH),
                done: Vec::with_capacity(BATCH),
                queue: end.queue,
                socket: end.socket,
            });
        }
        let sender = senders.into_iter().next();
        let sender = sender.ok_or(io::ErrorKind::InvalidData.into());
        let sender = FrameSender::new(sender.map_err(failed)?).map_err(failed)?;
        let waker = Waker::new().map_err(failed)?;
        program.attach(&device)?;
        Ok(Self {
            receivers: polled,
            named: Arc::default(),
            readable,
            waker: Arc::new(waker),
            rejected: 0,
            address: SocketAddr::new(device.address(), port),
            program: AttachedProgram {
                program,
                reserved: ParentsOnly::new(reserved),
            },
            sender: XskUdpSender {
                sender,
                links: LinkTable::new(),
                device,
                port,
                written: 0,
                unsent: 0,
            },
        })
    }

    /// An address for the port's clients: the device's first IPv4 address, or else its first address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The kernel's number of the device.
    #[must_use]
    pub fn ifindex(&self) -> u32 {
        self.sender.device.ifindex
    }

    /// What the device must stay like.
    #[must_use]
    pub fn watch(&self) -> DeviceWatch {
        self.sender.device.watch()
    }

    /// Whether the device has a source address for packets to this one.
    #[must_use]
    pub fn has_address_towards(&self, host: IpAddr) -> bool {
        self.sender.device.address_towards(host).is_some()
    }

    /// The hosts to which the port sends first, none at the start. Any thread may set them.
    #[must_use]
    pub fn named_hosts(&self) -> Arc<HostLinks> {
        Arc::clone(&self.named)
    }

    /// Receives a batch of waiting packets in place of the last batch; returns their number. No system call.
    #[inline]
    pub fn receive(&mut self) -> usize {
        self.sender.links.follow(&self.named, &self.sender.device);
        let mut received = 0;
        for receiver in &mut self.receivers {
            let BatchReceiver { ring, batch, .. } = receiver;
            while batch.len() < BATCH {
                let Some(frame) = ring.pop() else { break };
                batch.push(frame);
            }
            if !batch.is_empty() {
                ring.release();
            }
            received += batch.len();
        }
        received
    }

    /// Hands each datagram of the batch to `take`, with the sending end; then the kernel gets the batch's memory back.
    #[inline]
    pub fn each(&mut self, mut take: impl FnMut(PortDatagram<'_>, &mut XskUdpSender)) {
        for receiver in &mut self.receivers {
            let BatchReceiver {
                batch, done, queue, ..
            } = receiver;
            for frame in batch.drain(..) {
                match parse(frame.packet(queue.umem())) {
                    Some(datagram) => {
                        let link = PeerLink {
                            link: datagram.link,
                            own_ip: datagram.to.ip,
                        };
                        let number = self.sender.links.number(datagram.from.ip, link);
                        let from = Peer::at(datagram.from.ip, datagram.from.port);
                        let datagram = PortDatagram {
                            from: from.with_scope(number),
                            bytes: datagram.payload,
                        };
                        take(datagram, &mut self.sender);
                    }
                    None => self.rejected += 1,
                }
                done.push(frame.token);
            }
            queue.refill(done);
        }
    }

    /// The sending end.
    pub fn sender(&mut self) -> &mut XskUdpSender {
        &mut self.sender
    }

    /// Blocks until a packet waits, the waker is used, or the timeout passed; may return early.
    pub fn wait(&self, timeout_ns: u64) {
        self.waker.wait(Some(self.readable.0.as_fd()), timeout_ns);
    }

    /// The waker with which another thread ends [`wait`](Self::wait).
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Datagrams not sent: the link to the peer was evicted, or there was no room.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.sender.unsent
    }

    /// Datagrams lost: no room, no return path to the sender, a wrong checksum, or the device had taken their VLAN tag out.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let sockets = self.receivers.iter();
        let by_kernel: u64 = sockets.map(|receiver| receiver.socket.dropped()).sum();
        by_kernel + self.rejected + self.program.program.stripped()
    }
}

impl XskUdpSender {
    /// Writes a datagram of two parts to an earlier sender or a named host. It leaves with the next [`flush`](Self::flush).
    #[inline]
    pub fn send(&mut self, to: Peer, payload: [&[u8]; 2]) {
        let Some(link) = self.links.link(to.ip(), to.scope()) else {
            self.unsent += 1;
            return;
        };
        let frame = ResponseFrame {
            own_mac: self.device.mac.0,
            link: link.link,
            from: UdpEnd {
                ip: link.own_ip,
                port: self.port,
            },
            to: UdpEnd {
                ip: to.ip(),
                port: to.port(),
            },
            payload,
        };
        match self.sender.push(|to| frame.write(to)) {
            Ok(()) => self.written += 1,
            Err(_) => self.unsent += 1,
        }
    }

    /// Makes the kernel send the written datagrams: one system call for some dozens of frames.
    #[inline]
    pub fn flush(&mut self) {
        if self.written == 0 {
            return;
        }
        // A later call sends the frames that the kernel leaves in the ring.
        if self.sender.flush().is_ok() {
            self.written = 0;
        }
    }
}

impl std::fmt::Debug for XskUdpPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("XskUdpPort")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
