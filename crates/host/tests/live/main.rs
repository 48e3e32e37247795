//! A real daemon and real applications, in processes of their own that are killed, stopped and lied to.
//!
//! They need two cores and the right to pin threads. Where they are not permitted they say why, and pass.

mod apps;
mod bad;
mod basics;
mod kills;
mod processes;
mod stage;
