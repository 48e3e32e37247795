//! Single-producer, single-consumer rings of packets in shared memory. The other side is the kernel (`AF_XDP`) or another process.
//!
//! The protocol is that of `AF_XDP`: two indices that count entries and wrap at 2³², each written by one side. The
//! [cursors](cursor) are independent of the memory, so they are tested without a kernel. An untrusted side can write anything into
//! the shared memory. So indices are checked, positions are masked, and an entry is copied before it is used.
//!
//! | concern | file |
//! |---|---|
//! | indices, and what may be read or written | [`cursor`] |
//! | shared memory, reached through atomics | [`mapping`] |
//! | rings of words in such memory, as the kernel lays them out | [`ring`] |
//! | a pair of rings that hold packets themselves, between two processes | [`lane`] |
//! | what is needed soon, into the caches | [`prefetch`](prefetch::prefetch) |

pub mod cursor;
#[cfg(not(loom))]
pub mod lane;
#[cfg(not(loom))]
pub mod mapping;
pub mod prefetch;
#[cfg(not(loom))]
pub mod ring;
