//! The properties of parsing, on random bytes and on the corpora.

mod arbitrary;
mod corpus;
mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;
