//! The switch in user space on a device's packets, by `AF_XDP`: its port, and the next hops of its servers.

use super::settings::RackSettings;
use super::xdp::{ASK_FOR, NEIGHBOURS_EVERY, interface_name, known_again};
use crate::device_port::DevicePort;
use crate::error::usage;
use anyhow::{Context, Result};
use headway_xdp::{Neighbour, neighbour_of};
use headway_xsk::{HostLinks, LinkedHost, MacAddress, XskUdpPort};
use std::sync::{Arc, Weak};
use std::thread;

/// Opens the port and names all servers to it. The XDP program and its sockets end with the port.
pub(super) fn open(settings: &RackSettings, place: &DevicePort) -> Result<XskUdpPort> {
    let listen = &settings.listen;
    let port = XskUdpPort::open(&place.device, place.port);
    let port = port.map_err(|error| listen.refused(error))?;
    let reached = settings.servers.iter().map(|&server| {
        let neighbour = neighbour_of(server, ASK_FOR).map_err(|error| usage("--server", error))?;
        if neighbour.ifindex != port.ifindex() {
            let why = format!(
                "{server} is reached by {}: the switch has one device, for clients and servers; name that one, or listen on ADDR:PORT",
                interface_name(neighbour.ifindex)
            );
            return Err(listen.refused(why));
        }
        if !port.has_address_towards(server.ip()) {
            let why = format!(
                "{} has no address of the family of {server}: give it one",
                place.device
            );
            return Err(listen.refused(why));
        }
        Ok(neighbour)
    });
    let reached: Vec<Neighbour> = reached.collect::<Result<_>>()?;
    let named = port.named_hosts();
    named.set(linked(&reached));
    follow(reached, Arc::downgrade(&named))?;
    Ok(port)
}

fn linked(servers: &[Neighbour]) -> Vec<LinkedHost> {
    let hosts = servers.iter().map(|server| LinkedHost {
        ip: server.address.ip(),
        mac: MacAddress(server.mac),
    });
    hosts.collect()
}

/// Updates the servers' Ethernet addresses at intervals until the port is gone. A server that is now behind another interface keeps
/// its old address.
fn follow(mut servers: Vec<Neighbour>, named: Weak<HostLinks>) -> Result<()> {
    let follow = move || {
        loop {
            thread::sleep(NEIGHBOURS_EVERY);
            let Some(named) = named.upgrade() else {
                return;
            };
            let again = servers.iter().map(|&server| {
                let now = known_again(server);
                if now.ifindex == server.ifindex {
                    now
                } else {
                    server
                }
            });
            let again: Vec<Neighbour> = again.collect();
            if servers != again {
                servers = again;
                named.set(linked(&servers));
            }
        }
    };
    let thread = thread::Builder::new().name("hw-neighbours".into());
    let started = thread.spawn(follow);
    started.context("cannot start the thread that follows the servers' Ethernet addresses")?;
    Ok(())
}
