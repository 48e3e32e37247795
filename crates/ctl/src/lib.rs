//! The control socket of a running process, for `headway ctl` and its kin.
//!
//! A process binds a [`ControlSocket`](socket::ControlSocket) at a path that clients find, and has a thread answer there for a
//! [`Responder`](socket::Responder). For a server that is its [`Subject`](server::Subject): its status, its counters, where its suspended
//! requests stand, and the change of its policy's parameters. The command and the C interface both serve it. Only the user of the process, and root, are answered.

pub mod place;
pub mod protocol;
pub mod server;
pub mod socket;
mod stacks;
mod unwind;
