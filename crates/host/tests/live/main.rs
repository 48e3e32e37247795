//! A real daemon and real applications, in processes of their own that are killed, stopped and lied to.
//!
//! They need two cores and the right to pin threads. Without them they print the reason, and pass.

mod apps;
mod bad;
mod basics;
mod containers;
mod kills;
mod processes;
mod programs;
mod signals;
mod stage;
mod strangers;
mod timers;
mod unit;
