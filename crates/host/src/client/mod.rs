//! The side of the arbiter that applications link: their kthreads get cores from the daemon, and give them back.
//!
//! ```no_run
//! use headway_host::client::{ClientOptions, HostClient};
//! use headway_kthread::CoreSource;
//!
//! let client = HostClient::register("/run/headway/host.sock", &ClientOptions::new("kv", 2))?;
//! // A kthread:
//! let grant = client.enter(0);
//! # Ok::<(), headway_host::client::ClientError>(())
//! ```

mod join;
mod links;
mod network;
mod signal;
mod source;
mod thread;

pub use join::ClientError;
pub(crate) use join::ask;
pub use links::ClientOptions;
pub use network::ClientNetwork;
pub use source::HostClient;
