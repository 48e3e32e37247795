//! Headway for C and C++: `libheadway` and `headway.h`.
//!
//! What a C program sees is plain: structs that begin with their size, so that later versions may add to them; functions that return 0 or
//! a negative code, whose words [`headway_last_error`](status::headway_last_error) has; one opaque handle for a server and one for a
//! request. No panic leaves this crate.
//!
//! - [`options`]: what a server is to be.
//! - [`service`]: what the program brings: three functions of the papers (Concord § 4.1: `setup`, `setup_worker`, `handle_request`) and a classifier.
//! - [`request`]: what `handle_request` does with its request.
//! - [`requests`]: how a loop takes requests and answers them, in place of `handle_request`.
//! - [`server`]: start, watch, stop.
//! - [`threads`], [`waiting`] and [`sharing`]: threads in user space, what they wait for, and what they share.
//!
//! What stands in `headway.h` is made of these files by cbindgen; what must be inline there is
//! `include/headway_preempt.h`, by hand.

pub mod options;
pub mod request;
pub mod requests;
pub mod server;
pub mod service;
pub mod sharing;
mod shim;
pub mod stats;
pub mod status;
mod text;
pub mod threads;
mod versioned;
pub mod waiting;
