//! The switch of a rack as an XDP program. It runs the same step as the [`Shaper`](headway_policy::rack::Shaper) of the policies, in the
//! kernel, before the network stack sees a packet.
//!
//! The program is C ([`bpf/rack.bpf.c`](https://github.com/headway/headway/tree/main/crates/xdp/bpf)). [`compile`] builds it with clang
//! on demand; [`XdpSwitch`] loads it, attaches it to interfaces, and exchanges tables and registers with it.
//!
//! | concern | file |
//! |---|---|
//! | what becomes of each packet | `bpf/rack.bpf.c`, `bpf/nat.h`, `bpf/shed.h` |
//! | bursts, and the program that copies their requests | `bpf/burst.h`, `bpf/clones.h` |
//! | headers and checksums | `bpf/packet.h` |
//! | tables and registers in memory, described once | `bpf/tables.h`, mirrored in `layout.rs` |
//! | the object, built by clang | [`compile`] |
//! | how the kernel reaches a server | [`neighbour_of`], [`interface_to`] |
//! | what a device can do for the program | [`takes_redirected`], [`may_lack_checksums`] |
//! | tables made from a policy's | [`tables_of`] |
//! | what this machine lacks for it | [`missing`] |
//! | load, attach, publish, read | [`XdpSwitch`], in `switch.rs` and `attach.rs` |
//! | the switch's own Ethernet addresses | `addresses.rs` |
//! | VLAN tags beside packets | `bpf/tags.h`, [`HiddenTags`] |
//! | what a removed server had | `bpf/lose.h`, `lose.rs` |
//! | the namespace that a switch is of | `namespace.rs` |
//! | what outlives the process, and for how long | [`SwitchPins`] |
//! | what an earlier process left | [`LeftTables`] |
//! | the kernel's ticks | `ticks.rs` |

mod addresses;
mod attach;
mod features;
mod grace;
mod head;
mod layout;
mod left;
mod lose;
mod namespace;
mod neighbours;
mod object;
mod pins;
mod registers;
mod support;
mod switch;
mod tables;
mod tags;
mod ticks;

/// The driver's way to run the program.
pub use aya::programs::XdpMode;
pub use features::{may_lack_checksums, takes_redirected};
pub use left::LeftTables;
pub use neighbours::{NeighbourError, interface_to, neighbour_of};
pub use object::{ObjectError, XdpObjects, compile};
pub use pins::{PinsError, SwitchPins, pinned_switches};
pub use registers::{Registers, ServerRegisters, TypeRegisters, XdpCounts};
pub use support::missing;
pub use switch::{CloneOrder, Mode, RunPacket, SwitchError, XdpSwitch, XdpSwitchConfig};
pub use tables::{Neighbour, XdpTables, tables_of, tables_of_places};
pub use tags::HiddenTags;
