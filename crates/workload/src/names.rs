//! The names of the workloads of the literature.

/// Every name that [`Workload::named`](crate::Workload::named) knows.
pub const NAMES: [&str; 18] = [
    "high-bimodal",
    "extreme-bimodal",
    "tpcc",
    "rocksdb",
    "zippydb",
    "leveldb",
    "leveldb-synergy",
    "leveldb-zippydb",
    "fixed-1us",
    "exponential-1us",
    "exponential-10us",
    "shenango-bimodal",
    "pallas-normal",
    "pallas-port",
    "pallas-trimodal",
    "pallas-tpcc",
    "pallas-rocksdb-normal",
    "pallas-rocksdb-port",
];
