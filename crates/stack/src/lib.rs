//! TCP and UDP inside an application: blocking sockets for its threads, over the lanes of a host's data plane. Linux's own stack is on the other side, or another such application.
//!
//! The stack is Headway's own: [TCP](tcp) for the data centre, UDP, ping, IPv4 and IPv6 over Ethernet. Flows are spread over tables, each under a lock of its own,
//! so that the kthreads of an application rarely wait for one another. Any kthread polls the stack, and takes packets from all lanes while it does.
//!
//! | concern | file |
//! |---|---|
//! | the stack: addresses, polling, time | [`NetStack`] |
//! | the stack of an application behind a host's daemon | [`NetStack::of_host`] |
//! | threads that wait for it | [`ThreadParking`]: [`OsThreads`], or in user space [`Uthreads`] |
//! | sockets of TCP | [`TcpStream`], [`TcpListener`] |
//! | the protocol TCP, without I/O or clock | [`tcp`] |
//! | UDP | [`UdpSocket`] |
//! | IP, neighbours, ping | `ip/` |
//! | lanes | `lanes.rs` |

mod datagrams;
mod hosted;
mod ip;
mod lanes;
mod net_stack;
mod ports;
mod stream;
pub mod tcp;
mod threads;
mod udp;
mod uthreads;

pub use hosted::HostStackError;
pub use lanes::LaneCounts;
pub use net_stack::{NetStack, StackConfig};
pub use ports::NoPort;
pub use stream::{TcpListener, TcpStream};
pub use threads::{OsThreads, ThreadParking};
pub use udp::UdpSocket;
pub use uthreads::Uthreads;
