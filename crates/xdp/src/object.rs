//! The program's object, which clang builds on demand.

pub use headway_bpf::ObjectError;

const SOURCES: [(&str, &str); 13] = [
    ("rack.bpf.c", include_str!("../bpf/rack.bpf.c")),
    ("bare.bpf.c", include_str!("../bpf/bare.bpf.c")),
    ("packet.h", include_str!("../bpf/packet.h")),
    ("tags.h", include_str!("../bpf/tags.h")),
    headway_bpf::KERNEL_BUFFER,
    ("tables.h", include_str!("../bpf/tables.h")),
    ("nat.h", include_str!("../bpf/nat.h")),
    ("burst.h", include_str!("../bpf/burst.h")),
    ("overflow.h", include_str!("../bpf/overflow.h")),
    ("clones.h", include_str!("../bpf/clones.h")),
    ("shed.h", include_str!("../bpf/shed.h")),
    ("choose.h", include_str!("../bpf/choose.h")),
    ("lose.h", include_str!("../bpf/lose.h")),
];

/// The compiled programs.
#[derive(Debug, Clone)]
pub struct XdpObjects {
    /// The switch.
    pub rack: Vec<u8>,
    /// Programs that the switch is measured and tested with: one that sends each packet back, one that passes it on.
    pub bare: Vec<u8>,
}

/// The programs as an earlier call on this machine compiled them, or compiled now, in seconds, with `HEADWAY_CLANG` or the first clang that is
/// installed.
///
/// # Errors
/// [`ObjectError`] when the compiler or its headers are missing; it names the packages to install.
pub fn compile() -> Result<XdpObjects, ObjectError> {
    let layout = crate::layout::asserts(&crate::registers::COUNT_NAMES);
    let sources = [&SOURCES[..], &[("layout.h", layout.as_str())]].concat();
    let [rack, bare] = headway_bpf::objects(&sources, ["rack.bpf", "bare.bpf"])?;
    Ok(XdpObjects { rack, bare })
}
