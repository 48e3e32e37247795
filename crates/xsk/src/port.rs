//! Whole frames of a device, for hosts behind it that live in this process or in others.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, OwnedFd};

use aya::programs::XdpMode;
use headway_net::udp::Steering;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::device::{DeviceWatch, NetDevice};
use crate::error::XskError;
use crate::link_kind::check_that_all_frames_come;
use crate::mac::MacAddress;
use crate::program::{SteerConfig, SteerProgram, compile};
use crate::queue::{self, DeviceQueue, DeviceSockets};
use crate::socket::XskSocket;
use crate::system;
use crate::tx::FrameSender;
use crate::umem::{FrameToken, RxRing};

/// A host behind a device. The [`XskPort`] receives frames to this Ethernet address, and ARP requests for this IPv4 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddress {
    /// The Ethernet address, another than the device's.
    pub mac: MacAddress,
    /// The IPv4 address.
    pub ip: Ipv4Addr,
}

/// A device whose queues one thread polls. It receives frames for hosts [added](Self::add_host); all others go to the kernel.
pub struct XskPort {
    receivers: Vec<PortReceiver>,
    sender: FrameSender,
    program: SteerProgram,
    device: NetDevice,
    mode: XdpMode,
    /// While it is open, the device takes frames to all addresses.
    _promiscuous: OwnedFd,
}

struct PortReceiver {
    ring: RxRing,
    done: Vec<FrameToken>,
    queue: std::sync::Arc<DeviceQueue>,
    socket: XskSocket,
}

impl XskPort {
    /// Opens the device and attaches the program.
    ///
    /// # Errors
    /// [`XskError`], which names the remedy.
    pub fn open(device: &str) -> Result<Self, XskError> {
        let device = NetDevice::find_ethernet(device)?;
        check_that_all_frames_come(&device)?;
        let failed = |source| XskError::System {
            device: device.name.clone(),
            operation: "rings",
            source,
        };
        let DeviceSockets { receivers, senders } = queue::open(&device, 1, 1)?;
        let config = SteerConfig {
            sockets: 1,
            port: None,
            steering: Steering::Flow,
        };
        let mut program = SteerProgram::load(&compile()?, &device, config)?;
        let mut polled = Vec::new();
        for (place, end) in receivers.into_iter().flatten().enumerate() {
            program.set_socket(place as u32, end.socket.fd())?;
            let ring = end.rings.rx.ok_or(io::ErrorKind::InvalidData.into());
            polled.push(PortReceiver {
                ring: ring.map_err(failed)?,
                done: Vec::new(),
                queue: end.queue,
                socket: end.socket,
            });
        }
        let sender = senders.into_iter().next();
        let sender = sender.ok_or(io::ErrorKind::InvalidData.into());
        let sender = FrameSender::new(sender.map_err(failed)?).map_err(failed)?;
        let mode = program.attach(&device)?;
        if mode == XdpMode::Skb && system::merges_packets(&device.name) {
            return Err(XskError::MergesPackets {
                device: device.name,
            });
        }
        let promiscuous = system::promiscuous(device.ifindex);
        let promiscuous = promiscuous
            .map_err(|source| XskError::of_call(&device.name, 0, "promiscuous mode", source))?;
        Ok(Self {
            receivers: polled,
            sender,
            program,
            device,
            mode,
            _promiscuous: promiscuous,
        })
    }

    /// The device's own Ethernet address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.device.mac
    }

    /// The longest packet that the device takes, without its Ethernet header.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.device.mtu as usize
    }

    /// Descriptors that are readable while a frame waits.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = self.receivers.iter();
        sockets.map(|receiver| receiver.socket.fd())
    }

    /// Whether the program runs in the device's driver, rather than behind it.
    #[must_use]
    pub fn is_in_driver(&self) -> bool {
        self.mode == XdpMode::Driver
    }

    /// What the device must stay like.
    #[must_use]
    pub fn watch(&self) -> DeviceWatch {
        self.device.watch()
    }

    /// Receives this host's frames from now on.
    ///
    /// # Errors
    /// When the program's 256 places for hosts are taken.
    pub fn add_host(&mut self, host: HostAddress) -> Result<(), XskError> {
        self.program.add_host(host.mac, host.ip.octets())
    }

    /// Leaves this host's frames to the kernel from now on.
    pub fn remove_host(&mut self, host: HostAddress) {
        self.program.remove_host(host.mac, host.ip.octets());
    }

    /// Hands up to `most` waiting frames of each queue to `take`; returns how many. No system call.
    #[inline]
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> usize {
        let mut received = 0;
        for receiver in &mut self.receivers {
            let PortReceiver {
                ring, done, queue, ..
            } = receiver;
            for _ in 0..most {
                let Some(frame) = ring.pop() else { break };
                take(frame.packet(queue.umem()));
                done.push(frame.token);
                received += 1;
            }
            if !done.is_empty() {
                ring.release();
                queue.refill(done);
            }
        }
        received
    }

    /// Writes a frame, which leaves with the next [`flush`](Self::flush): `write` fills it and returns its length.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when no frame is free; [`io::ErrorKind::InvalidInput`] when `write` gives up.
    #[inline]
    pub fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> io::Result<()> {
        self.sender.push(write)
    }

    /// Makes the kernel send the written frames: one system call for some dozens of frames.
    ///
    /// # Errors
    /// When the device is down, or the kernel has no memory. A later call sends the frames left.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        self.sender.flush()
    }

    /// Frames lost: no room, or the device had taken their VLAN tag out.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let sockets = self.receivers.iter();
        let by_kernel: u64 = sockets.map(|receiver| receiver.socket.dropped()).sum();
        by_kernel + self.program.stripped()
    }

    /// Blocks until a frame waits, `other` is readable, or the timeout passed.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, timeout_ns: u64) {
        let sockets = self.receivers.iter();
        let sockets = sockets.map(|receiver| receiver.socket.fd());
        let mut fds: Vec<PollFd<'_>> = sockets
            .chain(other)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        let timeout = TimeSpec::from(std::time::Duration::from_nanos(timeout_ns));
        // An interrupted call counts as an early return.
        let _ = ppoll(&mut fds, Some(timeout), None);
    }
}

impl std::fmt::Debug for XskPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("XskPort")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
