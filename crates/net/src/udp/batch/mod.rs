//! Many datagrams in one system call (`recvmmsg`, `sendmmsg`): a server's in its slots, a client's and a switch's in buffers of their own.

mod buffers;
mod messages;
mod named;
mod slots;

pub use buffers::{Inbox, Outbox};
pub use named::{NamedDatagram, NamedInbox, NamedOutbox};
pub use slots::Batch;
pub(super) use slots::Received;
