//! Pools on real threads. The tests assert counts, orders and ends, and wait for conditions, never for a time.

mod bad_input;
mod cancelling;
mod common;
mod counts;
mod drawn;
mod ends;
mod futures;
mod limits;
mod nesting;
mod outside;
mod owning;
mod policies;
mod polling;
mod strangers;
