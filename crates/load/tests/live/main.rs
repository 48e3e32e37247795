//! Loads on a server over the loopback interface.

mod delivery;
mod latency;
mod support;
