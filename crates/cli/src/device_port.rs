//! `xdp://DEVICE:PORT`: a UDP port of a device, without the kernel's network stack.

use std::fmt;

/// The scheme that names a device in place of an address.
const SCHEME: &str = "xdp://";

/// A UDP port on all addresses of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevicePort {
    pub(crate) device: String,
    /// 0: the system chooses.
    pub(crate) port: u16,
}

impl DevicePort {
    /// `None` for a text of another scheme.
    pub(crate) fn parse(url: &str) -> Option<Result<Self, String>> {
        let place = url.strip_prefix(SCHEME)?;
        let parts = place.rsplit_once(':');
        let parts = parts.filter(|(device, _)| !device.is_empty());
        let parsed = parts.and_then(|(device, port)| Some((device, port.parse().ok()?)));
        let (device, port) = match parsed {
            Some(parsed) => parsed,
            None => {
                return Some(Err(format!(
                    "'{url}' names no device and port: write xdp://DEVICE:PORT, as in xdp://eth0:7000"
                )));
            }
        };
        Some(Ok(Self {
            device: device.to_owned(),
            port,
        }))
    }
}

impl fmt::Display for DevicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}:{}", self.device, self.port)
    }
}
