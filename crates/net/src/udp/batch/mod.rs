//! Many datagrams in one system call (`recvmmsg`, `sendmmsg`): a server's in its slots, a client's in buffers of their own.

mod buffers;
mod messages;
mod slots;

pub use buffers::{Inbox, Outbox};
pub use slots::Batch;
pub(super) use slots::Received;
