//! The service `demo.Store` and its messages, as a compiler of protocol buffers would make them of
//!
//! ```proto
//! message Query { uint64 micros = 1; }
//! message Row { uint64 steps = 1; }
//! service Store { rpc Point(Query) returns (Row); rpc Report(Query) returns (Row); }
//! ```

/// How long to compute.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Query {
    /// Microseconds.
    #[prost(uint64, tag = "1")]
    pub micros: u64,
}

/// What was computed.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Row {
    /// Steps of the computation.
    #[prost(uint64, tag = "1")]
    pub steps: u64,
}

#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/demo.Store.rs"));
}

pub use stubs::{store_client, store_server};
