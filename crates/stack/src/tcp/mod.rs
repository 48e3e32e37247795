//! TCP for the data centre: RFC 9293 with 5681 (congestion), 5961 (attacks), 6191 (TIME-WAIT), 6298 (timeouts, at least 5 ms), 6675 and 2018 (selective
//! acknowledgements), 7323 (large windows, timestamps), 4987 (SYN floods).
//!
//! | concern | file |
//! |---|---|
//! | segments on the wire | `segment.rs` |
//! | a connection, as a state machine without I/O or clock | `connection/` |
//! | reassembly and windows; loss recovery | `connection/receiver.rs`, `connection/sender.rs` |
//! | all flows that share a lock | `table.rs` |
//! | handshakes under floods; ended connections | `syn_cache.rs`, `time_wait.rs` |
//! | timers | `timers.rs` |
//! | those who wait | `wakers.rs` |

mod congestion;
pub(crate) mod connection;
pub(crate) mod flow;
pub(crate) mod listening;
mod ranges;
mod ring;
mod rtt;
pub mod segment;
mod syn_cache;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod time_wait;
mod timers;
pub(crate) mod wakers;
