//! The devices that a switch in the kernel is attached to, and their end.

use nix::net::if_::if_nametoindex;

/// A device that the switch is attached to no longer exists.
#[derive(Debug, thiserror::Error)]
#[error(
    "device {device} was removed, or another one has its name now, and the switch gets no packets there: `ip link show {device}` shows it; start the switch anew when it is there"
)]
pub(super) struct DeviceGone {
    device: String,
}

/// Devices by name, with the kernel's numbers at the time when the switch was attached.
#[derive(Default)]
pub(super) struct AttachedDevices(Vec<(String, u32)>);

impl AttachedDevices {
    /// Adds a device that the switch was just attached to.
    pub(super) fn add(&mut self, device: &str) {
        // One that is gone already has the number 0, which no device has.
        let number = if_nametoindex(device).unwrap_or(0);
        self.0.push((device.to_owned(), number));
    }

    /// Their numbers.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.0.iter().map(|&(_, number)| number).collect()
    }

    /// Checks that each name still means the same device.
    pub(super) fn check(&self) -> Result<(), DeviceGone> {
        let is_gone =
            |(name, number): &&(String, u32)| if_nametoindex(name.as_str()).ok() != Some(*number);
        self.0.iter().find(is_gone).map_or(Ok(()), |(name, _)| {
            Err(DeviceGone {
                device: name.clone(),
            })
        })
    }
}
