//! The switch in user space on a device's packets, by `AF_XDP`: its port, and the next hops of its servers.

use super::settings::RackSettings;
use super::xdp_reach::{ASK_FOR, NEIGHBOURS_EVERY, ReachCheck, interface_name, known_again};
use crate::device_port::DevicePort;
use crate::error::usage;
use anyhow::{Context, Result};
use headway_xdp::{Neighbour, neighbour_of};
use headway_xsk::{HostLinks, LinkedHost, MacAddress, XskUdpPort};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// Opens the port and names all servers to it. The XDP program and its sockets end with the port.
pub(super) fn open(
    settings: &RackSettings,
    place: &DevicePort,
) -> Result<(XskUdpPort, ReachCheck)> {
    let listen = &settings.listen;
    let port = XskUdpPort::open(&place.device, place.port);
    let port = port.map_err(|error| listen.refused(error))?;
    let reached = settings.servers.iter().map(|server| {
        let server = server.addr;
        let neighbour = neighbour_of(server, ASK_FOR).map_err(|error| usage("--server", error))?;
        check_device(neighbour, port.ifindex()).map_err(|why| listen.refused(why))?;
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
    let hosts = FollowedHosts {
        servers: Mutex::new(reached),
        named: Arc::downgrade(&named),
    };
    let hosts = Arc::new(hosts);
    follow(Arc::clone(&hosts))?;
    let (ifindex, is_ipv4) = (port.ifindex(), place_family(settings));
    let reaches = move |server: SocketAddr, patience: Duration| {
        if server.is_ipv4() != is_ipv4 {
            return Err(format!(
                "{server} is of another family than the switch's servers"
            ));
        }
        let neighbour = neighbour_of(server, patience).map_err(|error| error.to_string())?;
        check_device(neighbour, ifindex)?;
        hosts.add(neighbour);
        Ok(())
    };
    Ok((port, Box::new(reaches)))
}

/// Whether the servers have IPv4 addresses.
fn place_family(settings: &RackSettings) -> bool {
    let first = settings.servers.first();
    first.is_some_and(|server| server.addr.is_ipv4())
}

/// Checks that a server is behind the switch's device.
fn check_device(server: Neighbour, ifindex: u32) -> Result<(), String> {
    if server.ifindex == ifindex {
        return Ok(());
    }
    Err(format!(
        "{} is reached by {}: the switch has one device, for clients and servers; name that one, or listen on ADDR:PORT",
        server.address,
        interface_name(server.ifindex)
    ))
}

/// The next hops of the servers.
struct FollowedHosts {
    servers: Mutex<Vec<Neighbour>>,
    named: Weak<HostLinks>,
}

impl FollowedHosts {
    fn lock(&self) -> MutexGuard<'_, Vec<Neighbour>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a server that is about to be added.
    fn add(&self, server: Neighbour) {
        let mut servers = self.lock();
        servers.retain(|other| other.address != server.address);
        servers.push(server);
        if let Some(named) = self.named.upgrade() {
            named.set(linked(&servers));
        }
    }

    /// Looks all of them up again. `false`: the port is gone. A server that is now behind another interface keeps its old address.
    fn look(&self) -> bool {
        let Some(named) = self.named.upgrade() else {
            return false;
        };
        let mut servers = self.lock();
        let again = servers.iter().map(|&server| {
            let now = known_again(server);
            if now.ifindex == server.ifindex {
                now
            } else {
                server
            }
        });
        let again: Vec<Neighbour> = again.collect();
        if *servers != again {
            *servers = again;
            named.set(linked(&servers));
        }
        true
    }
}

fn linked(servers: &[Neighbour]) -> Vec<LinkedHost> {
    let hosts = servers.iter().map(|server| LinkedHost {
        ip: server.address.ip(),
        mac: MacAddress(server.mac),
    });
    hosts.collect()
}

/// Updates the servers' Ethernet addresses at intervals until the port is gone.
fn follow(hosts: Arc<FollowedHosts>) -> Result<()> {
    let follow = move || {
        loop {
            thread::sleep(NEIGHBOURS_EVERY);
            if !hosts.look() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("hw-neighbours".into());
    let started = thread.spawn(follow);
    started.context("cannot start the thread that follows the servers' Ethernet addresses")?;
    Ok(())
}
