//! TCP and UDP inside an application: blocking sockets for its threads, over the lanes of a host's data plane. Linux's own stack is on the other side, or another such application.
//!
//! smoltcp is the protocol; this crate ties it to [lanes](headway_rings::lane) and to threads that can be parked. The stack of an application is one state
//! under one lock. Any kthread polls it, and takes packets from all lanes while it does.
//!
//! | concern | file |
//! |---|---|
//! | the stack: addresses, polling, time | [`NetStack`] |
//! | the stack of an application behind a host's daemon | [`NetStack::of_host`] |
//! | threads that wait for it | [`ThreadParking`]: [`OsThreads`], or in user space [`Uthreads`] |
//! | TCP | [`TcpStream`], [`TcpListener`] |
//! | UDP | [`UdpSocket`] |
//! | lanes as a device of smoltcp's | `device.rs` |

mod device;
mod hosted;
mod net_stack;
mod tcp;
mod threads;
mod udp;
mod uthreads;

pub use device::LaneCounts;
pub use hosted::HostStackError;
pub use net_stack::{NetStack, NoPort, StackConfig};
pub use tcp::{TcpListener, TcpStream};
pub use threads::{OsThreads, ThreadParking};
pub use udp::UdpSocket;
pub use uthreads::Uthreads;
