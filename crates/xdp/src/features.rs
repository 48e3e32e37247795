//! What a device can do for an XDP program, as the kernel says by netlink.

use crate::neighbours::{HEADER, Kernel, LINK_ATTRIBUTES, attribute};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;
use std::path::Path;

// linux/if_link.h, linux/genetlink.h, linux/netdev.h.
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const XDP_ATTACHED_NONE: u8 = 0;
const XDP_ATTACHED_DRV: u8 = 1;
const GENL_ID_CTRL: u16 = 16;
const GENL_BODY: usize = 4;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 4;

/// Whether the device sends packets that a program on another device redirects to it. Some drivers do so only while they have a program themselves; a veth
/// pair's end does while its peer has one, or has GRO on. What it does not send it drops, and counts nowhere. `None` where the kernel does not say: Linux
/// before 6.3.
#[must_use]
pub fn takes_redirected(device: &str) -> Option<bool> {
    let ifindex = if_nametoindex(device).ok()?;
    let features = xdp_features(ifindex).ok()?;
    Some(features & NETDEV_XDP_ACT_NDO_XMIT != 0)
}

/// Whether packets may come from this device with UDP checksums that were left to hardware: they have met none where the device is a virtual one, of this
/// machine or of its hypervisor. A device that /sys does not show counts as one.
#[must_use]
pub fn may_lack_checksums(device: &str) -> bool {
    let parent = Path::new("/sys/class/net").join(device).join("device");
    let driver = std::fs::read_link(parent.join("driver"));
    driver.map_or(true, |driver| {
        let name = driver.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("virtio") || name == "vif" || name == "hv_netvsc"
    })
}

/// Where the program of an interface runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DriverMode {
    InDriver,
    /// Behind it, or in the device itself, or several.
    Elsewhere,
}

/// What the kernel tells of an interface.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct LinkAbout {
    /// `veth` and the like; nothing for a device of hardware.
    pub(crate) kind: Vec<u8>,
    /// None without a program.
    pub(crate) attached: Option<DriverMode>,
}

/// What the kernel tells of the interface of this number.
pub(crate) fn link_of(ifindex: u32) -> Result<LinkAbout, Errno> {
    let kernel = Kernel::open(SockProtocol::NetlinkRoute)?;
    let answer = kernel.ask_of_link(ifindex)?;
    let within = |group, kind| attribute(attribute(&answer, LINK_ATTRIBUTES, group)?, 0, kind);
    let kind = within(IFLA_LINKINFO, IFLA_INFO_KIND).unwrap_or_default();
    let attached = within(IFLA_XDP, IFLA_XDP_ATTACHED).and_then(|mode| mode.first());
    Ok(LinkAbout {
        kind: kind.strip_suffix(&[0]).unwrap_or(kind).to_vec(),
        attached: match attached {
            None | Some(&XDP_ATTACHED_NONE) => None,
            Some(&XDP_ATTACHED_DRV) => Some(DriverMode::InDriver),
            Some(_) => Some(DriverMode::Elsewhere),
        },
    })
}

fn xdp_features(ifindex: u32) -> Result<u64, Errno> {
    let kernel = Kernel::open(SockProtocol::NetlinkGeneric)?;
    let ask = |family: u16, command: u8, attribute: (u16, &[u8])| {
        kernel.ask(family, &[command, 1, 0, 0], Some(attribute))
    };
    let name = (CTRL_ATTR_FAMILY_NAME, &b"netdev\0"[..]);
    let answer = ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name)?;
    let family = attribute(&answer, HEADER + GENL_BODY, CTRL_ATTR_FAMILY_ID);
    let family = family.and_then(|bytes| bytes.try_into().ok());
    let family = u16::from_ne_bytes(family.ok_or(Errno::ENOENT)?);
    let device = (NETDEV_A_DEV_IFINDEX, &ifindex.to_ne_bytes()[..]);
    let answer = ask(family, NETDEV_CMD_DEV_GET, device)?;
    let features = attribute(&answer, HEADER + GENL_BODY, NETDEV_A_DEV_XDP_FEATURES);
    let features = features.and_then(|bytes| bytes.try_into().ok());
    Ok(u64::from_ne_bytes(features.ok_or(Errno::ENOENT)?))
}
