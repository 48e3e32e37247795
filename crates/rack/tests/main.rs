//! The switch, its agents and its control plane, without sockets.

mod agent;
mod common;
mod corpus;
mod fuzzed;
#[path = "fuzzed/key_file.rs"]
mod key_file;
mod members;
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod silence;
mod step;
