//! A running process seen from outside: what a pool and a server share of it, and what rack and host use of it.
//!
//! A process that can be asked is a [`Subject`](subject::Subject): it has a status, parameters that may change, and metrics. [`StatusDoors`](doors::StatusDoors)
//! says where it answers: at a [control socket](socket), which `headway ctl` and `headway top` ask, and over [HTTP](http), for Prometheus and browsers.
//!
//! | file | what is there |
//! |---|---|
//! | `place` | where control sockets are, and whose |
//! | `protocol`, `socket` | the control socket: a line of JSON each way, a thread that answers |
//! | `descriptors` | what a listening thread does when no descriptor is free |
//! | `http` | one port for a page, the status and the metrics; many clients at once |
//! | `subject`, `doors` | one process behind both |
//! | `status`, `server_status` | the fields of the status of a pool, and of a server |
//! | `metrics` | the same in the words of `prometheus-client` |
//! | `signals` | SIGTERM drains |

pub mod descriptors;
pub mod doors;
pub mod http;
pub mod metrics;
pub mod place;
pub mod protocol;
pub mod server_status;
pub mod signals;
pub mod socket;
pub mod status;
pub mod subject;
