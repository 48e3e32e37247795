//! Kthreads and their arbiter, in every interleaving: their lines, the side that applications link, and kthreads without an arbiter.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p headway-kthread --release --test loom`
#![cfg(loom)]

mod client;
mod futex;
mod lines;
mod memory;
mod standalone;
