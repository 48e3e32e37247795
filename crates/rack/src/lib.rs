//! The switch of a rack, in user space: clients send to its port, it sends each request to one of the servers behind it, and their
//! responses come back through it.
//!
//! [`RackSwitch`] is the switch without I/O: a datagram and the time go in, datagrams with destinations come out. It parses and
//! writes the [wire header](headway_net::header), translates addresses and indices, and filters; where a request goes is decided by a
//! [`Switch`](headway_policy::rack::Switch) of the policies, the same that the simulator runs. [`UdpSwitch`] runs it on a UDP port, in
//! batches. It needs no root.
//!
//! | concern | file |
//! |---|---|
//! | what becomes of each packet | [`RackSwitch`] |
//! | whose request it is: client's address and index | `nat.rs` |
//! | the servers' addresses | [`ServerAddresses`] |
//! | the interfaces by which servers are heard | [`ServerInterfaces`] |
//! | the sizes of its tables | [`SwitchLimits`] |
//! | what the switch knows of its servers | `servers.rs` |
//! | which type a type byte names | `types.rs` |
//! | servers that are silent | `watch.rs` |
//! | servers that come, drain and go: the orders, and what the switch does | [`RackRoster`], `members.rs` |
//! | requests that the policy holds back | `held.rs` |
//! | what was forwarded, and what was dropped for which reason | [`PacketCounts`] |
//! | packets as they come and leave | [`ReceivedPacket`], [`PacketSink`] |
//! | a kind of socket, in batches | [`PacketPort`], [`UdpPort`] |
//! | which of a socket's addresses a client asked | `local_addresses.rs`, [`LocalAddress`] |
//! | a device's packets by `AF_XDP` | `xsk.rs`, [`headway_xsk::XskUdpPort`] |
//! | the loop between a port and the switch | [`PortSwitch`], [`UdpSwitch`] |
//! | requests that took longer than an SLO allows | [`slo`] |
//! | registers and tables between switch and control plane | [`SwitchTables`] |
//! | when to change the tables, and into what | [`RackControl`] |
//! | the loop of a control plane, and the scoring beside it | [`ControlCycle`], [`run_control`] |
//! | what servers report, and what they are to do | [`agent`] |

mod addresses;
pub mod agent;
mod control;
mod control_loop;
mod counts;
mod held;
mod interfaces;
mod limits;
mod local_addresses;
mod members;
mod nat;
mod packet;
mod port;
mod roster;
mod servers;
pub mod slo;
mod switch;
mod tables;
mod types;
mod udp;
mod watch;
mod xsk;

pub use addresses::{AddressError, ServerAddresses};
pub use control::{RackControl, ScoringTask, score_by_simulation};
pub use control_loop::{ControlCycle, ControlStep, keep_control, run_control};
pub use counts::{KernelCounts, PacketCounts};
pub use interfaces::ServerInterfaces;
pub use limits::SwitchLimits;
pub use packet::{LocalAddress, PacketSink, ReceivedPacket};
pub use port::{LostPackets, PacketPort, PortWaker, UdpPort, UdpSink};
pub use roster::{Membership, RackMember, RackRoster, RosterError, RosterFollower, RosterPlane};
pub use switch::RackSwitch;
pub use tables::{SwitchReport, SwitchTables};
pub use types::TypeTable;
pub use udp::{PortSwitch, SwitchStopper, UdpSwitch};
