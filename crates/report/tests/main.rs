//! SLOs and the published schemas.

mod corpus;
mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod schema;
