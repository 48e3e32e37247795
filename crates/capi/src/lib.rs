//! Headway for C and C++: `libheadway` and `headway.h`.
//!
//! A C program sees a plain interface. Structs begin with their size, so that later versions may add to them. Functions return 0 or a negative
//! code, and [`headway_last_error`](status::headway_last_error) has the message. There is one opaque handle for a server and one for a request.
//! No panic leaves this crate.
//!
//! - [`options`]: a server's options.
//! - [`service`]: the program's functions: three of the papers (Concord § 4.1: `setup`, `setup_worker`, `handle_request`) and a classifier.
//! - [`request`]: reading and answering a request in `handle_request`.
//! - [`requests`]: taking and answering requests in a loop, in place of `handle_request`.
//! - [`server`]: start, watch, stop.
//! - `control`: the socket by which `headway ctl` reaches a server.
//! - `granted`: registering with a host's daemon, whose cores a server or a runtime of threads then runs on.
//! - [`pool`], [`pool_options`], [`pool_jobs`], [`pool_stats`]: a pool in process, its options, its jobs and its counts.
//! - [`threads`], [`waiting`] and [`sharing`]: threads in user space, their locks, and their shared data.
//! - [`sockets`]: TCP for these threads.
//!
//! cbindgen generates `headway.h` from these files. Its inline functions are in
//! `include/headway_preempt.h`, written by hand.

mod granted;
pub mod options;
pub mod pool;
pub mod pool_jobs;
pub mod pool_options;
pub mod pool_stats;
pub mod request;
pub mod requests;
mod safe_stack;
pub mod server;
pub mod service;
pub mod sharing;
mod shim;
pub mod sockets;
pub mod stats;
pub mod status;
mod text;
pub mod threads;
pub mod tuning;
mod versioned;
mod vfork;
pub mod waiting;
