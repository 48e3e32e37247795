//! A deterministic world in which the live engines run: production code, a seed, a commit, the same run to the bit.
//!
//! | part | file |
//! |---|---|
//! | which thread runs, and each thread's virtual clock | `scheduler.rs` |
//! | datagrams that are lost, repeated, reordered, delayed | `network.rs` |
//! | handlers that take virtual time and meet probes | `handler.rs` |
//! | what happens in the world of a seed | `scenario.rs`, `trials.rs` |
//! | an arbiter that grants and revokes the workers' cores | `granted.rs`; what must hold then: `cores.rs` |
//! | a live server in it, and its owner | `play.rs` |
//! | what must hold | `check.rs`; by the policy's plan: `plans.rs`; of longs: `longs.rs` |
//! | which engine lives in a world, and how to repeat it | `engine.rs` |
//! | a rack: switch, control plane, agents | `rack/` |
//! | a host's arbiter | `host.rs` |
//! | many worlds, and how to repeat one | `search.rs` |
//! | a given workload instead of a drawn one | `served.rs` |
//!
//! The engines are those of `headway-runtime`, as they are: they read the [clock that they are given](headway_runtime::Builder::clock), and where
//! they would sleep they ask the [world's scheduler](headway_sync::world). One thread of the system runs at a time, so nothing but the seed decides what
//! happens. What a weak memory model would add is checked by loom instead.

mod check;
mod cores;
mod engine;
mod granted;
mod handler;
mod host;
mod longs;
mod network;
mod plans;
mod play;
mod rack;
mod random;
mod scenario;
mod scheduler;
mod search;
mod served;
mod trials;
mod verdict;

pub use engine::{WorldEngine, describe, live};
pub use scenario::{Faults, UnknownFault};
pub use search::{AmissWorld, Searched, WorldSearch, silence_expected_panics};
pub use served::{ServedWorkload, TimedRequest};
pub use verdict::WorldVerdict;
