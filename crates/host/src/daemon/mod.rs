//! The daemon: it registers applications at a Unix socket, and moves cores between them.
//!
//! Two threads, and a third once there is a program. The registrar registers applications and notices their end. The pass thread runs the arbiter's passes: it spins on a core of
//! its own, or wakes at intervals and when an application rings. The third tells the kernel the cores of programs' control groups.

mod access;
mod closer;
mod connections;
mod cycle;
mod device;
mod doors;
mod event;
mod given;
mod inbox;
mod listener;
mod network;
mod notify;
mod programs;
mod registrar;
mod say;
mod server;
mod settings;
mod state;

pub use notify::Notifier;
pub(crate) use say::say;
pub use server::{DaemonError, HostDaemon, HostObserver};
pub use settings::{AppNetwork, AppRule, DaemonSettings};
