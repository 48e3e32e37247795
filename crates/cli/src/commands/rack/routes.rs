//! The interfaces that lead to the servers of a switch in user space, as the kernel's routes change.

use super::xdp_reach::{NEIGHBOURS_EVERY, ReachCheck};
use anyhow::{Context, Result};
use headway_policy::rack::ServerId;
use headway_rack::{RackRoster, ServerInterfaces};
use headway_xdp::interface_to;
use std::sync::Arc;
use std::thread;

/// The interfaces that lead to the servers now, which a thread updates every second while the switch uses them.
pub(super) fn follow(roster: &Arc<RackRoster>) -> Result<Arc<ServerInterfaces>> {
    let places = roster.members().len();
    let interfaces = Arc::new(ServerInterfaces::unknown(places));
    look(roster, &interfaces);
    let roster = Arc::clone(roster);
    let in_use = Arc::downgrade(&interfaces);
    thread::Builder::new()
        .name("hw-routes".into())
        .spawn(move || {
            while let Some(interfaces) = in_use.upgrade() {
                look(&roster, &interfaces);
                drop(interfaces);
                thread::sleep(NEIGHBOURS_EVERY);
            }
        })
        .context("cannot start the thread that follows the routes to the servers")?;
    Ok(interfaces)
}

/// A server without a route keeps its interface. One of this machine has none, and the kernel refuses its address from outside.
fn look(roster: &RackRoster, interfaces: &ServerInterfaces) {
    for (place, member) in (0..).zip(roster.members()) {
        if let Some(member) = member
            && let Ok(leads) = interface_to(member.address.ip())
        {
            interfaces.set(ServerId(place), leads.unwrap_or(0));
        }
    }
}

/// Refuses a server without a route.
pub(super) fn check() -> ReachCheck {
    Box::new(|server, _| match interface_to(server.ip()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
}
