//! Single-producer, single-consumer rings of packets in shared memory. The other side is the kernel (`AF_XDP`) or another process.
//!
//! The protocol is that of `AF_XDP`: two indices that count entries and wrap at 2³², each written by one side. The
//! [cursors](cursor) know nothing of memory, so they are tested without a kernel. A side that is not trusted can write anything
//! into the shared memory: indices are checked, places masked, and an entry is copied before it is looked at.
//!
//! | concern | file |
//! |---|---|
//! | indices, and what may be read or written | [`cursor`] |
//! | shared memory, reached through atomics | [`mapping`] |
//! | rings of words in such memory | [`ring`] |

pub mod cursor;
#[cfg(not(loom))]
pub mod mapping;
#[cfg(not(loom))]
pub mod ring;
mod sync;
