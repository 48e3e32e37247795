//! The arbiter of a host, live (Shenango, NSDI '19): applications get cores within microseconds of needing them, and batch programs the
//! cores that are left.
//!
//! The policy decides which application gets which core: the same compiled [`Allocator`](headway_policy::host::Allocator) that the simulator
//! runs. This crate carries its decisions out.
//!
//! | part | what it is |
//! |---|---|
//! | [`daemon`] | the process that grants and revokes: registrations over a Unix socket, then one loop |
//! | [`arbiter`] | one pass of that loop: what kthreads show, what the allocator decides, what the kernel is told |
//! | [`client`] | the side that applications link: a [`CoreSource`](headway_kthread::CoreSource) |
//! | [`cgroup`] | control groups of such programs |
//! | [`program`] | unmodified programs, confined to the cores that they are granted |
//! | [`message`] | what is said at the socket |
//! | [`lanes`] | packets between a network device and an application, by way of the daemon |
//! | [`memory`] | the lines that an application and the daemon share |
//!
//! The daemon trusts nothing that it reads from an application. It keeps the numbers of grants itself. Whenever it acts on a thread, it checks that the
//! thread belongs to the process at the other end of the socket. It makes no call that an application could block.

pub mod arbiter;
pub mod cgroup;
pub mod client;
pub mod daemon;
mod futex;
pub mod lanes;
pub mod memory;
pub mod message;
mod packet;
mod peer;
pub mod program;
pub mod topology;

/// The socket of the system's daemon.
pub const SYSTEM_SOCKET: &str = "/run/headway/host.sock";

pub use peer::{HostPeer, PeerProcess};
