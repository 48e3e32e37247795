//! The command as its users run it.

#![expect(
    unsafe_code,
    reason = "signals are sent to the servers under test, and the C interface is called"
)]

mod agents;
mod benching;
mod browser;
mod checks;
mod children;
mod contract;
mod controlling;
mod controlling_c;
mod counted;
mod cut_off;
mod doors;
mod early_signals;
mod errors;
mod filtered;
mod hosted;
mod hosting;
mod hosting_xdp;
mod hosts;
mod interrupting;
mod learning;
mod live;
mod looking;
mod mistakes;
mod others_sockets;
mod places;
mod planning;
mod planning_recordings;
mod planning_two_cores;
mod policies;
mod programs;
mod quota;
mod racked;
mod racking;
mod racking_device_xdp;
mod racking_kills;
mod racking_members;
mod racking_pinned;
mod racking_tags_xdp;
mod racking_veth_xdp;
mod racking_xdp;
mod racks;
mod recording;
mod replayed;
mod reproduce;
mod serving;
mod serving_xdp;
mod small_stack;
mod spreadsheets;
mod standing;
mod surroundings;
mod sweeps;
mod terminals;
mod unread;
mod watching;

use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU16, Ordering};

/// Runs `headway` with these arguments until it ends.
fn headway(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(args)
        .output()
        .expect("headway runs")
}

/// The standard output of `headway`, which must be one JSON value.
fn json(args: &[&str]) -> serde_json::Value {
    let output = headway(args);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{args:?}: {error}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Splits a command line into words.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// An address that no other call returns, of an IP that is this process's own. Its port is none that the system gives to sockets that ask for any.
fn own_address() -> SocketAddr {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(7_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    SocketAddr::from(([127, 128 | high, middle, low], port))
}
