//! Where a switch listens.

use crate::args::host_port as address;
use crate::device_port::DevicePort;
use std::net::{Ipv4Addr, SocketAddr};

/// The value of `--listen`.
#[derive(Clone)]
pub(super) enum RackListen {
    Udp(SocketAddr),
    /// A port of a device, on all of its addresses, for a switch in user space.
    Device(DevicePort),
}

impl RackListen {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match DevicePort::parse(text) {
            Some(device) => device.map(Self::Device),
            None => address(text).map(Self::Udp),
        }
    }

    /// The same with the port that the system chose.
    pub(super) fn bound(&self, at: SocketAddr) -> Self {
        match self {
            Self::Udp(_) => Self::Udp(at),
            Self::Device(device) => Self::Device(device.clone()),
        }
    }

    /// The address in the form of the flag, with the port that the system chose.
    pub(super) fn shown(&self, at: SocketAddr) -> String {
        match self {
            Self::Udp(_) => format!("udp://{at}"),
            Self::Device(DevicePort { device, .. }) => DevicePort {
                device: device.clone(),
                port: at.port(),
            }
            .to_string(),
        }
    }

    /// The address for agents' reports, if servers can know the switch by it: they drop clones of, and hand requests back to, the address
    /// that their orders come from alone.
    pub(super) fn with_agents_at(&self, agents: SocketAddr) -> Result<SocketAddr, String> {
        match self {
            Self::Udp(switch)
                if switch.ip() != agents.ip()
                    && !switch.ip().is_unspecified()
                    && !agents.ip().is_unspecified() =>
            {
                Err(format!(
                    "the switch has the address {}: servers would drop no clones and hand nothing back, since they know it by the address \
                     of their orders; give the agents that address and another port",
                    switch.ip()
                ))
            }
            _ => Ok(agents),
        }
    }

    /// The default address for agents' reports: the port after this one.
    pub(super) fn agents(&self) -> SocketAddr {
        let (ip, port) = match self {
            Self::Udp(at) => (at.ip(), at.port()),
            Self::Device(device) => (Ipv4Addr::UNSPECIFIED.into(), device.port),
        };
        // If the system chooses the switch's port, or that port is the last one, the system chooses the agents' port too.
        let next = match port {
            0 => 0,
            port => port.checked_add(1).unwrap_or(0),
        };
        SocketAddr::new(ip, next)
    }
}
