//! The interfaces that lead to the servers of a switch in user space, as the kernel's routes change.

use super::settings::RackSettings;
use super::xdp::NEIGHBOURS_EVERY;
use anyhow::{Context, Result};
use headway_policy::rack::ServerId;
use headway_rack::ServerInterfaces;
use headway_xdp::interface_to;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

/// The interfaces that lead to the servers now, which a thread updates every second while the switch uses them.
pub(super) fn follow(settings: &RackSettings) -> Result<Arc<ServerInterfaces>> {
    let servers = settings.servers.clone();
    let interfaces = Arc::new(ServerInterfaces::unknown(servers.len()));
    look(&servers, &interfaces);
    let in_use = Arc::downgrade(&interfaces);
    thread::Builder::new()
        .name("hw-routes".into())
        .spawn(move || {
            while let Some(interfaces) = in_use.upgrade() {
                look(&servers, &interfaces);
                drop(interfaces);
                thread::sleep(NEIGHBOURS_EVERY);
            }
        })
        .context("cannot start the thread that follows the routes to the servers")?;
    Ok(interfaces)
}

/// A server without a route keeps its interface. One of this machine has none, and the kernel refuses its address from outside.
fn look(servers: &[SocketAddr], interfaces: &ServerInterfaces) {
    for (number, server) in (0..).zip(servers) {
        if let Ok(leads) = interface_to(server.ip()) {
            interfaces.set(ServerId(number), leads.unwrap_or(0));
        }
    }
}
