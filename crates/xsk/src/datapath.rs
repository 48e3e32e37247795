//! A server's datapath: UDP to a port of a device.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use headway_machine::thread::fork::ParentsOnly;
use headway_net::datapath::{Datapath, DatapathEnds, Rx, Tx};
use headway_net::udp::Steering;

use crate::device::{DeviceWatch, NetDevice};
use crate::error::XskError;
use crate::program::{SteerConfig, SteerProgram, compile};
use crate::queue::{self, DeviceSockets};
use crate::reserve::{port_of, reserve};
use crate::rx::{AttachedProgram, XskRx};
use crate::tx::XskTx;

/// The address of service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XskConfig {
    /// The device.
    pub device: String,
    /// The UDP port, on all addresses that the device has at the start; 0 lets the system choose.
    pub port: u16,
    /// The field that chooses a request's receive queue, when there are several.
    pub steering: Steering,
}

/// A device's UDP port, to be [split](Datapath::split) over threads. Requests do not pass the kernel's network stack; ARP,
/// neighbour discovery and everything to other ports do.
#[derive(Debug)]
pub struct XskDatapath {
    config: XskConfig,
    device: NetDevice,
    object: Vec<u8>,
    /// A kernel socket on the port, which keeps other programs off it.
    reserved: ParentsOnly<OwnedFd>,
}

impl XskDatapath {
    /// Takes the port, and compiles the steering program. Packets arrive after the [split](Datapath::split).
    ///
    /// # Errors
    /// [`XskError`], which names the remedy.
    pub fn open(config: XskConfig) -> Result<Self, XskError> {
        let device = NetDevice::find_reachable(&config.device)?;
        let object = compile()?;
        let reserved = reserve(&device, config.port)?;
        let port = port_of(&reserved).unwrap_or(config.port);
        Ok(Self {
            config: XskConfig { port, ..config },
            device,
            object,
            reserved: ParentsOnly::new(reserved),
        })
    }

    /// The port, which the system may have chosen.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// An address for clients of the server: the device's first IPv4 address, or else its first address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.device.address(), self.config.port)
    }

    /// What the device must stay like: the server gets no packets otherwise, and nothing else says so.
    #[must_use]
    pub fn watch(&self) -> DeviceWatch {
        self.device.watch()
    }

    /// Opens the sockets and attaches the program.
    fn divide(self, rx_queues: usize, senders: usize) -> Result<DividedDatapath, XskError> {
        let Self {
            config,
            device,
            object,
            reserved,
        } = self;
        let sockets = queue::open(&device, rx_queues, senders)?;
        let steer = SteerConfig {
            sockets: rx_queues as u32,
            port: Some(config.port),
            steering: config.steering,
        };
        let mut program = SteerProgram::load(&object, &device, steer)?;
        for (receiver, ends) in sockets.receivers.iter().enumerate() {
            for (number, end) in ends.iter().enumerate() {
                let place = number * rx_queues + receiver;
                program.set_socket(place as u32, end.socket.fd())?;
            }
        }
        program.attach(&device)?;
        Ok(DividedDatapath {
            sockets,
            program: Arc::new(AttachedProgram { program, reserved }),
            device,
            port: config.port,
        })
    }
}

struct DividedDatapath {
    sockets: DeviceSockets,
    program: Arc<AttachedProgram>,
    device: NetDevice,
    port: u16,
}

impl Datapath for XskDatapath {
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        if rx_queues == 0 {
            let what = "an AF_XDP datapath needs at least one receive queue";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let divided = self.divide(rx_queues, tx)?;
        let DeviceSockets { receivers, senders } = divided.sockets;
        let rxs = receivers
            .into_iter()
            .enumerate()
            .map(|(number, ends)| {
                let rx = XskRx::new(ends, &divided.program, number == 0)?;
                Ok(Arc::new(rx) as Arc<dyn Rx>)
            })
            .collect::<io::Result<_>>()?;
        let txs = senders
            .into_iter()
            .map(|end| {
                let tx = XskTx::new(end, divided.device.mac, divided.port)?;
                Ok(Box::new(tx) as Box<dyn Tx>)
            })
            .collect::<io::Result<_>>()?;
        Ok(DatapathEnds { rxs, txs })
    }
}
