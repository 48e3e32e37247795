//! `AF_XDP`: this process receives and sends packets of a device without the kernel's network stack.
//!
//! An [XDP program](https://github.com/headway/headway/tree/main/crates/xsk/bpf/steer.bpf.c) chooses packets in the driver. The kernel
//! copies them into memory that it shares with the process, which takes them from a ring without a system call. All other packets go on to
//! the kernel. Attachment and sockets end with the process, however it ends.
//!
//! | concern | file |
//! |---|---|
//! | a server's datapath: UDP to a port of a device | [`XskDatapath`] |
//! | whole frames, to hosts behind the device | [`XskPort`] |
//! | UDP in and out for one thread, such as a switch's | [`XskUdpPort`] |
//! | how frames reach senders and named hosts | `links.rs`, [`HostLinks`] |
//! | the port, kept from others | `reserve.rs` |
//! | headers and checksums of requests and responses | `frame.rs`, `checksum.rs` |
//! | the program that steers | `bpf/steer.bpf.c`, `program.rs` |
//! | VLAN tags that a device takes out of packets | `tags.rs`, [`hides_tags`] |
//! | sockets and their rings | `socket.rs`, `queue.rs` |
//! | packet memory | `umem.rs` |
//! | a device's addresses and queues, and what must stay of them | `device.rs`, [`DeviceWatch`] |
//! | devices above another, which keep back frames for hosts behind them | `link_kind.rs` |
//! | what this machine lacks for it | [`missing`] |

mod checksum;
mod datapath;
mod device;
mod error;
mod frame;
mod link_kind;
mod links;
mod mac;
mod port;
mod program;
mod queue;
mod reserve;
mod rx;
mod socket;
mod support;
mod system;
mod tags;
mod tx;
mod udp_port;
mod umem;

pub use datapath::{XskConfig, XskDatapath};
pub use device::DeviceWatch;
pub use error::XskError;
pub use frame::echo_frame;
pub use links::{HostLinks, LinkedHost};
pub use mac::MacAddress;
pub use port::{HostAddress, XskPort};
pub use rx::XskRx;
pub use support::missing;
pub use tags::hides_tags;
pub use tx::XskTx;
pub use udp_port::{PortDatagram, XskUdpPort, XskUdpSender};
