//! The kind of a device, read by netlink. Some devices lie above another, which hands them the frames for their own Ethernet address only: promiscuous mode
//! changes nothing about that.

use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::net::if_::if_indextoname;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use crate::device::NetDevice;
use crate::error::XskError;

// linux/netlink.h, linux/rtnetlink.h, linux/if_link.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
/// Bits of an attribute's type that say how its value is written.
const ATTRIBUTE_FLAGS: u16 = 0xc000;
const HEADER: usize = 16;
const LINK_BODY: usize = 16;
const IFLA_LINK: u16 = 5;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_MACVLAN_MODE: u16 = 1;
const MACVLAN_MODE_PASSTHRU: u32 = 8;

/// Refuses a device that gets no frames for the Ethernet addresses of hosts behind it. A kernel that says nothing of the device's kind refuses none.
pub(crate) fn check_that_all_frames_come(device: &NetDevice) -> Result<(), XskError> {
    let Ok(answer) = ask_of_link(device.ifindex) else {
        return Ok(());
    };
    let attributes = answer.get(HEADER + LINK_BODY..).unwrap_or_default();
    let Some(kind) = kind_that_keeps_frames_back(attributes) else {
        return Ok(());
    };
    // The number of a device in another namespace names nothing here, or something else.
    let is_here = attribute(attributes, IFLA_LINK_NETNSID).is_none();
    let lower = attribute(attributes, IFLA_LINK).filter(|_| is_here);
    let lower = lower.and_then(|value| if_indextoname(word(value)?).ok());
    Err(XskError::KeepsFramesBack {
        device: device.name.clone(),
        kind,
        lower: lower.map_or(String::new(), |name| {
            format!(", {}", name.to_string_lossy())
        }),
    })
}

fn kind_that_keeps_frames_back(attributes: &[u8]) -> Option<String> {
    let info = attribute(attributes, IFLA_LINKINFO)?;
    let kind = attribute(info, IFLA_INFO_KIND)?;
    let kind = String::from_utf8_lossy(kind.strip_suffix(&[0]).unwrap_or(kind)).into_owned();
    let mode = || {
        word(attribute(
            attribute(info, IFLA_INFO_DATA)?,
            IFLA_MACVLAN_MODE,
        )?)
    };
    let keeps_back = match kind.as_str() {
        "macvlan" | "macvtap" => mode() != Some(MACVLAN_MODE_PASSTHRU),
        // All of them have the lower device's Ethernet address.
        "ipvlan" | "ipvtap" => true,
        _ => false,
    };
    keeps_back.then_some(kind)
}

/// The kernel's message about a device.
fn ask_of_link(ifindex: u32) -> Result<Vec<u8>, Errno> {
    let kernel = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let mut message = [0; HEADER + LINK_BODY];
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message[HEADER + 4..HEADER + 8].copy_from_slice(&ifindex.to_ne_bytes());
    send(kernel.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = vec![0; 32 * 1024];
    let received = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    answer.truncate(received);
    let is_link = answer.get(4..6) == Some(&RTM_NEWLINK.to_ne_bytes());
    is_link.then_some(answer).ok_or(Errno::EBADMSG)
}

/// The value of an attribute among these.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    while let [length_low, length_high, kind_low, kind_high, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([length_low, length_high]));
        let kind = u16::from_ne_bytes([kind_low, kind_high]) & !ATTRIBUTE_FLAGS;
        // A length below that of its own header ends the search, which would otherwise loop for ever.
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn word(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn link(kind: &str, mode: Option<u32>) -> Vec<u8> {
        let mut info = encoded(IFLA_INFO_KIND, format!("{kind}\0").as_bytes());
        if let Some(mode) = mode {
            let mode = encoded(IFLA_MACVLAN_MODE, &mode.to_ne_bytes());
            info.extend(encoded(IFLA_INFO_DATA | 0x8000, &mode));
        }
        [encoded(3, b"d0\0"), encoded(IFLA_LINKINFO, &info)].concat()
    }

    /// The kernel here need not have every kind.
    #[test]
    fn a_device_with_one_ethernet_address_keeps_frames_back_and_one_that_passes_all_does_not() {
        let kept = |kind: &str, mode| kind_that_keeps_frames_back(&link(kind, mode));
        for kind in ["ipvlan", "ipvtap"] {
            assert_eq!(kept(kind, Some(0)).as_deref(), Some(kind));
        }
        for kind in ["macvlan", "macvtap"] {
            assert_eq!(kept(kind, Some(MACVLAN_MODE_PASSTHRU)), None);
            for mode in [None, Some(1), Some(2), Some(4), Some(16)] {
                assert_eq!(kept(kind, mode).as_deref(), Some(kind), "{mode:?}");
            }
        }
        assert_eq!((kept("veth", None), kept("vlan", Some(4))), (None, None));
        let cut = &link("macvlan", Some(4))[..14];
        assert_eq!((kind_that_keeps_frames_back(cut), word(&[1])), (None, None));
    }
}
