//! VLAN tags that a device takes out of packets before the program sees them. An answer would lack them.

use std::path::Path;

use aya::Btf;
use aya::maps::{Array, MapData};
use aya::programs::XdpMode;
use aya_obj::btf::BtfKind;
use headway_bpf::{KERNEL_CONTEXT, with_kernel_calls};

use crate::device::NetDevice;
use crate::error::XskError;
use crate::system;

/// The object whose program finds the tags beside this device's packets. `None` where the device is none of a veth pair, or the kernel is older than
/// Linux 6.3.
pub(crate) fn looking_at(
    object: &[u8],
    device: &NetDevice,
    kernel: Option<&Btf>,
) -> Option<Vec<u8>> {
    if system::driver(&device.name).ok()? != "veth" {
        return None;
    }
    let number = |name| kernel?.id_by_type_name_kind(name, BtfKind::Func).ok();
    // Of the version in which veth pairs tell of their packets.
    number("bpf_xdp_metadata_rx_hash")?;
    let (stand_in, function) = KERNEL_CONTEXT;
    Some(with_kernel_calls(object, stand_in, Some(number(function)?)))
}

/// The object whose program looks at packets alone.
pub(crate) fn without_a_look(object: &[u8]) -> Vec<u8> {
    with_kernel_calls(object, KERNEL_CONTEXT.0, None)
}

/// Whether a device takes VLAN tags out of packets before an XDP program sees them, and is in VLANs: devices of this namespace lie upon it that are some.
#[must_use]
pub fn hides_tags(device: &str) -> bool {
    system::strips_tags(device) && is_in_vlans(Path::new("/sys/class/net"), device)
}

/// By the folder of devices. The kernel links each device to those that lie upon it.
fn is_in_vlans(devices: &Path, device: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(devices.join(device)) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let upon = name.strip_prefix("upper_");
        let about = upon.map(|upon| std::fs::read_to_string(devices.join(upon).join("uevent")));
        about.is_some_and(|about| about.is_ok_and(|about| about.contains("DEVTYPE=vlan\n")))
    })
}

/// The program's switch and count.
pub(crate) struct StrippedTags {
    map: Array<MapData, u64>,
    may_look: bool,
}

const LOOKS: u32 = 0;
const DROPPED: u32 = 1;

impl StrippedTags {
    pub(crate) fn new(map: Array<MapData, u64>, may_look: bool) -> Self {
        Self { map, may_look }
    }

    /// The program was attached. Behind the driver, packets have nothing beside them that it could read.
    pub(crate) fn look_at(&mut self, device: &str, mode: XdpMode) -> Result<(), XskError> {
        let looks = self.may_look && mode == XdpMode::Driver;
        if !looks && hides_tags(device) {
            return Err(XskError::HidesTags {
                device: device.to_owned(),
            });
        }
        let set = self.map.set(LOOKS, u64::from(looks), 0);
        set.map_err(|source| XskError::Map {
            what: "tags",
            source,
        })
    }

    /// Packets that were dropped for their tag.
    pub(crate) fn dropped(&self) -> u64 {
        self.map.get(&DROPPED, 0).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What the kernel shows of a device with a bridge or a VLAN upon it; not every kernel has VLANs.
    #[test]
    fn a_device_is_in_vlans_if_one_lies_upon_it() {
        let devices = std::env::temp_dir().join(format!("headway-vlans-{}", std::process::id()));
        for (device, kind) in [("eth0.5", "vlan"), ("br0", "bridge"), ("eth0", "none")] {
            fs::create_dir_all(devices.join(device)).unwrap();
            let about = format!("DEVTYPE={kind}\nINTERFACE={device}\n");
            fs::write(devices.join(device).join("uevent"), about).unwrap();
        }
        let upon = |upper: &str| fs::create_dir(devices.join("eth0").join(upper)).unwrap();
        upon("queues");
        upon("upper_br0");
        assert!(!is_in_vlans(&devices, "eth0"));
        upon("upper_eth0.5");
        assert!(is_in_vlans(&devices, "eth0"));
        assert!(!is_in_vlans(&devices, "eth0.5") && !is_in_vlans(&devices, "eth1"));
        fs::remove_dir_all(&devices).unwrap();
    }
}
