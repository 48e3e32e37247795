//! The servers that flags, the settings file or an order name.

use super::file::RackFile;
use super::listen::RackListen;
use crate::args::server_host_port;
use crate::commands::serve::config::Sourced;
use anyhow::Result;
use headway_policy::MAX_WORKERS;
use headway_rack::{AddressError, ServerAddresses};
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// A server and its number of workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NamedServer {
    pub(super) addr: SocketAddr,
    pub(super) cores: usize,
}

/// The servers of the flags; without flags, those of the file.
pub(super) fn named_servers(
    flags: &[String],
    file: &RackFile,
) -> Result<Vec<Sourced<NamedServer>>> {
    let set = &file.config.server;
    let named: Vec<Sourced<String>> = if flags.is_empty() {
        let named = set
            .iter()
            .map(|server| Sourced::new(server.get_ref().clone(), file.place("server", server)));
        named.collect()
    } else {
        let named = flags.iter().cloned();
        named
            .map(|text| Sourced::new(text, "--server".into()))
            .collect()
    };
    named
        .into_iter()
        .map(|server| server.parse(|text| named_server(text)))
        .collect()
}

/// Parses `ADDR:PORT[,cores=N]`.
pub(super) fn named_server(text: &str) -> Result<NamedServer, String> {
    let (place, cores) = match text.split_once(',') {
        None => (text, 1),
        Some((place, rest)) => {
            let cores = rest.trim().strip_prefix("cores=");
            let cores = cores.and_then(|cores| cores.parse::<usize>().ok());
            let cores = cores.filter(|cores| (1..=MAX_WORKERS).contains(cores));
            let cores = cores.ok_or_else(|| {
                format!("'{rest}' is not cores=N with 1 to {MAX_WORKERS} workers, such as cores=4")
            })?;
            (place, cores)
        }
    };
    Ok(NamedServer {
        addr: canonical(server_host_port(place)?),
        cores,
    })
}

/// The one way to write this address, so that a server is found by whatever name it was added: `::ffff:10.0.0.1` is 10.0.0.1.
pub(super) fn canonical(at: SocketAddr) -> SocketAddr {
    match at.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, at.port()),
        // With its scope.
        IpAddr::V6(_) => at,
    }
}

/// These servers, each of which may be sent requests.
pub(super) fn check_servers(
    servers: &[Sourced<NamedServer>],
    listen: &RackListen,
) -> Result<Vec<NamedServer>> {
    for server in servers {
        check_place(listen, server.value.addr).map_err(|why| server.refused(why))?;
    }
    let addresses: Vec<_> = servers.iter().map(|server| server.value.addr).collect();
    let checked = ServerAddresses::new(&addresses)
        .map(|_| servers.iter().map(|server| server.value).collect());
    checked.map_err(|error| {
        let at_fault = match &error {
            AddressError::Twice { server } | AddressError::Unspecified { server } => servers
                .iter()
                .rev()
                .find(|other| other.value.addr == *server),
            AddressError::None | AddressError::TooMany { .. } => servers.last(),
        };
        match at_fault {
            Some(server) => server.refused(error),
            None => crate::error::usage("--server", error),
        }
    })
}

/// Checks that `server` is not the switch itself, and that the switch's socket sends to such addresses.
pub(super) fn check_place(listen: &RackListen, server: SocketAddr) -> Result<(), String> {
    if is_own(listen, server) {
        return Err(format!(
            "{server} is where the switch itself listens: name the server's own address, or another --listen"
        ));
    }
    match *listen {
        RackListen::Udp(own) if !sends_to(own, server) => Err(format!(
            "{server} is of another family than the switch's address {own}, from where nothing gets there: listen at an address of its family"
        )),
        _ => Ok(()),
    }
}

/// Whether a socket that is bound to `own` reaches addresses of the server's family.
fn sends_to(own: SocketAddr, server: SocketAddr) -> bool {
    let has_both = own.is_ipv6() && own.ip().is_unspecified();
    let of_ip4 = |at: SocketAddr| at.ip().to_canonical().is_ipv4();
    has_both || of_ip4(own) == of_ip4(server)
}

/// Whether a packet to `server` would reach the switch itself.
fn is_own(listen: &RackListen, server: SocketAddr) -> bool {
    let RackListen::Udp(listen) = *listen else {
        return false;
    };
    if listen.port() == 0 || listen.port() != server.port() {
        return false;
    }
    let is_of_this_machine = || UdpSocket::bind((server.ip(), 0)).is_ok();
    server.ip().to_canonical() == listen.ip().to_canonical()
        || (listen.ip().is_unspecified() && is_of_this_machine())
}
