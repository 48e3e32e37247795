//! The step of `pallas` for switches that run P4: the entries that a control plane writes into their tables, and a model of the pipeline.
//!
//! The programs lie in `p4/`: [`rack_v1model.p4`](../p4/rack_v1model.p4) for bmv2's `simple_switch`, [`rack_tna.p4`](../p4/rack_tna.p4) for Tofino. Both
//! include the same headers and sizes, and have tables, actions and parameters of the same names. No P4 compiler and no such switch were at hand: neither
//! program was ever compiled. The tests check the [`Pipeline`], a model of tables and registers, filled with the [entries](entries_of) that the programs would
//! get, against the policy's own step; and that the programs declare every table, action and parameter that the entries name.
//!
//! A pipeline lacks operations that the policy uses:
//!
//! - it has no division: the window of bursts is a power of two of nanoseconds ([`WINDOW_SHIFT`]);
//! - it cannot compare products of registers: the excess of a burst is cloned to the next group of longer requests, not to the calmest of them;
//! - a packet can access a register once: a clone passes the pipeline a second time, where it takes its turn.

mod commands;
mod entries;
mod model;

pub use commands::simple_switch_commands;
pub use entries::{
    Entry, MAX_GROUPS, MAX_SERVERS, MAX_TURNS, MAX_TYPES, WINDOW_SHIFT, constant_entries,
    entries_of,
};
pub use model::{Pipeline, PipelineRegisters};
