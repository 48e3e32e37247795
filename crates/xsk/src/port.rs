//! Whole frames of a device: to and from hosts that live behind it, in this process or in others.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use aya::programs::XdpMode;
use headway_net::udp::Steering;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::device::{MacAddress, NetDevice};
use crate::error::XskError;
use crate::program::{SteerConfig, SteerProgram, compile};
use crate::queue::{self, DeviceQueue, DeviceSockets};
use crate::socket::XskSocket;
use crate::tx::FrameSender;
use crate::umem::{FrameToken, RxRing};

/// A host behind a device: frames to this Ethernet address, and ARP that asks for this IPv4 address, come to the [`XskPort`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddress {
    /// The Ethernet address, another than the device's.
    pub mac: MacAddress,
    /// The IPv4 address.
    pub ip: Ipv4Addr,
}

/// A device of which one thread polls all queues. Frames for hosts [added](Self::add_host) come here, all else goes to the kernel.
pub struct XskPort {
    receivers: Vec<PortReceiver>,
    sender: FrameSender,
    program: SteerProgram,
    device: NetDevice,
    mode: XdpMode,
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
    /// [`XskError`], which says what to do.
    pub fn open(device: &str) -> Result<Self, XskError> {
        let device = NetDevice::find(device)?;
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
        Ok(Self {
            receivers: polled,
            sender,
            program,
            device,
            mode,
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

    /// From here on frames for this host come here.
    ///
    /// # Errors
    /// When there are more hosts than the program has room for: 256.
    pub fn add_host(&mut self, host: HostAddress) -> Result<(), XskError> {
        self.program.add_host(host.mac, host.ip.octets())
    }

    /// From here on frames for this host are the kernel's again.
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

    /// Writes a frame, which leaves with the next [`flush`](Self::flush): `write` fills it and says how long it is.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where no frame is free; [`io::ErrorKind::InvalidInput`] where `write` gives up.
    #[inline]
    pub fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> io::Result<()> {
        self.sender.push(write)
    }

    /// Has the kernel send what was written: one system call for some dozens of frames.
    ///
    /// # Errors
    /// When the device is down, or the kernel has no memory; what it left goes with a later call.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        self.sender.flush()
    }

    /// Frames lost since there was no room for them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let sockets = self.receivers.iter();
        sockets.map(|receiver| receiver.socket.dropped()).sum()
    }

    /// Blocks until a frame waits, `other` is readable, or the time is over.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, timeout_ns: u64) {
        let sockets = self.receivers.iter();
        let sockets = sockets.map(|receiver| receiver.socket.fd());
        let mut fds: Vec<PollFd<'_>> = sockets
            .chain(other)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        let timeout = TimeSpec::from(std::time::Duration::from_nanos(timeout_ns));
        // An interrupted call is an early return.
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
