//! The pull API: a loop of the program's own takes requests with [`Requests::recv`] and answers them, instead of a handler that is called.
//!
//! A loop runs on a fiber of its own, on the worker's thread. The engine hands a request to [`Pull`] as to any service. `Pull` switches to the loop, which waits in
//! `recv`, and switches back when the loop waits again. So each request still begins and ends in its own call of [`Service::handle`]: its answer is sent
//! there, once, by the worker that ran it, and every count and every policy holds as for handlers.
//!
//! A request that is interrupted keeps its loop, suspended inside. The next request then goes to another loop of the same worker, which is started where none
//! waits. A loop that holds requests and asks for another suspends the calls that brought them, as an interruption would, and the policy says what is next.

mod drive;
mod program;
mod requests;
mod state;

pub use program::{Pull, PullService};
pub use requests::{Request, Requests};
