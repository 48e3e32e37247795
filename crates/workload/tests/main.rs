//! Workloads: their files, what they draw, and the errors for mistakes.

mod corpus;
mod distributions;
mod errors;
mod files;
mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod sequences;
