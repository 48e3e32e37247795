//! The devices that a switch in the kernel is attached to: what it needs of them, and their end.

use headway_xdp::{HiddenTags, may_lack_checksums, takes_redirected};
use headway_xsk::hides_tags;
use nix::net::if_::if_nametoindex;

/// Why a device serves the switch no more, or not at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeviceError {
    #[error(
        "device {0} was removed, or another one has its name now, and the switch gets no packets there: `ip link show {0}` shows it; start the switch anew when it is there"
    )]
    Gone(String),
    /// The kernel drops what is redirected to it, and counts it nowhere.
    #[error(
        "device {0} sends no packets that an XDP program redirects to it: of a veth pair give the other end GRO (`ethtool -K PEER gro on`); of another device see whether its driver sends redirected packets (ndo_xdp_xmit), or use one device for clients and servers, or leave --xdp out"
    )]
    TakesNothing(String),
    #[error(
        "device {0} is in VLANs and takes their tags out of packets before an XDP program sees them, so that requests with a tag would go on without: turn that off (`ethtool -K {0} rxvlan off`; of a veth pair also at the other end, `ethtool -K PEER txvlan off`), or name the VLAN's own device"
    )]
    HidesTags(String),
}

struct AttachedDevice {
    name: String,
    /// The kernel's number at the time when the switch was attached.
    ifindex: u32,
    takes: bool,
    tags: HiddenTags,
}

impl AttachedDevice {
    /// Whether the program redirects what leaves by the device that it came by, as in the driver of a veth pair, where it sees tags.
    fn redirects_back(&self) -> bool {
        self.tags == HiddenTags::Dropped
    }
}

/// Devices by name.
#[derive(Default)]
pub(super) struct AttachedDevices {
    devices: Vec<AttachedDevice>,
    told_of_tags: bool,
}

impl AttachedDevices {
    /// Adds a device that the switch was just attached to.
    pub(super) fn add(&mut self, device: &str, tags: HiddenTags) {
        self.devices.push(AttachedDevice {
            name: device.to_owned(),
            // One that is gone already has the number 0, which no device has.
            ifindex: if_nametoindex(device).unwrap_or(0),
            takes: true,
            tags,
        });
    }

    /// Their numbers.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.devices.iter().map(|device| device.ifindex).collect()
    }

    /// Checks that packets come whole, and that each takes what comes in by the others. Some drivers do so only since the switch is attached.
    pub(super) fn check_packets(&mut self) -> Result<(), DeviceError> {
        let loses_tags = |device: &&AttachedDevice| {
            device.tags == HiddenTags::Unseen && hides_tags(&device.name)
        };
        if let Some(device) = self.devices.iter().find(loses_tags) {
            return Err(DeviceError::HidesTags(device.name.clone()));
        }
        let several = self.devices.len() > 1;
        let redirects = |device: &&mut AttachedDevice| several || device.redirects_back();
        for device in self.devices.iter_mut().filter(redirects) {
            // A kernel that does not say leaves it to the user to see.
            device.takes = takes_redirected(&device.name).unwrap_or(true);
            if !device.takes {
                return Err(DeviceError::TakesNothing(device.name.clone()));
            }
        }
        Ok(())
    }

    /// Checks that each name still means the same device. Says of one that it no longer takes packets, once, and goes on: others may do.
    pub(super) fn check(&mut self) -> Result<(), DeviceError> {
        let several = self.devices.len() > 1;
        for device in &mut self.devices {
            if if_nametoindex(device.name.as_str()).ok() != Some(device.ifindex) {
                return Err(DeviceError::Gone(device.name.clone()));
            }
            let took = device.takes;
            device.takes = !(several || device.redirects_back())
                || takes_redirected(&device.name).unwrap_or(true);
            if took && !device.takes {
                let error = DeviceError::TakesNothing(device.name.clone());
                say!("{error}");
            }
        }
        Ok(())
    }

    /// Names the remedy, once, when packets were dropped whose VLAN tag lay beside them.
    pub(super) fn tell_of_tags(&mut self, dropped: u64) {
        if dropped > 0 && !self.told_of_tags {
            self.told_of_tags = true;
            say!(
                "packets are dropped whose VLAN tag their sender leaves to hardware, since the switch could only send them on without: turn that off at the other end of the veth pair (`ethtool -K PEER txvlan off`); `rack status` counts them as `hidden_tag`"
            );
        }
    }
}

/// Whether one of these devices may bring packets whose checksums were left to hardware.
pub(super) fn some_lack_checksums(devices: &[String]) -> bool {
    devices.iter().any(|device| may_lack_checksums(device))
}
