//! The daemon: it takes applications in at a Unix socket, and moves cores between them.
//!
//! Two threads. One registers applications and hears when they end. The other goes through passes: it spins on a core of its own, or wakes at
//! intervals and when an application rings.

mod cycle;
mod doors;
mod inbox;
mod listener;
mod network;
mod notify;
mod registrar;
mod server;
mod settings;
mod state;

pub use notify::Notifier;
pub use server::{DaemonError, HostDaemon, HostObserver};
pub use settings::{AppNetwork, AppRule, DaemonSettings};
