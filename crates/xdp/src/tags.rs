//! VLAN tags beside packets, which the program sees in the driver of a veth pair alone.

use crate::features::{DriverMode, link_of};
use aya::Btf;
use aya::programs::XdpMode;
use aya_obj::btf::BtfKind;
use headway_bpf::with_kernel_calls;

/// The program for the driver of a veth pair.
pub(crate) const VETH_PROGRAM: &str = "rack_veth";

/// What becomes of a packet whose VLAN tag lies beside it, since its sender or the device took it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HiddenTags {
    /// The program drops and counts it.
    Dropped,
    /// The program does not know of the tag. In the driver it sends the packet on without; behind the driver the kernel sends the tag too.
    Unseen,
}

/// The kernel's functions by which the program looks, with what stands for them in its sources.
const CALLS: [(u32, &str); 2] = [
    headway_bpf::KERNEL_CONTEXT,
    (0x4b43_5244, "bpf_rdonly_cast"),
];

/// The object with a [program](VETH_PROGRAM) that can be loaded. `None` where the kernel is older than Linux 6.3, or does not tell its types.
pub(crate) fn looking(object: &[u8]) -> Option<Vec<u8>> {
    let kernel = Btf::from_sys_fs().ok()?;
    let number = |name| kernel.id_by_type_name_kind(name, BtfKind::Func).ok();
    // Of the version in which veth pairs tell of their packets.
    number("bpf_xdp_metadata_rx_hash")?;
    CALLS
        .iter()
        .try_fold(object.to_vec(), |object, &(stand_in, name)| {
            let function = number(name)?;
            Some(with_kernel_calls(&object, stand_in, Some(function)))
        })
}

/// Whether a program that is attached so runs in the driver of a veth pair, the only one that keeps packets where the [program](VETH_PROGRAM) looks.
pub(crate) fn runs_in_veth(ifindex: u32, mode: XdpMode) -> bool {
    link_of(ifindex).is_ok_and(|link| {
        // A pinned attachment has a mode; without one the kernel prefers the driver.
        let in_driver = link.attached.map_or(
            matches!(mode, XdpMode::Default | XdpMode::Driver),
            |attached| attached == DriverMode::InDriver,
        );
        link.kind == b"veth" && in_driver
    })
}
