//! The ways to servers: their next hops, by the kernel's routes and neighbour table.

use crate::commands::serve::config::Sourced;
use crate::error::usage;
use anyhow::Result;
use headway_xdp::{Neighbour, NeighbourError, SwitchError, neighbour_of};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time between two updates of the servers' next hops.
pub(super) const NEIGHBOURS_EVERY: Duration = Duration::from_secs(1);
/// Time limit for the Ethernet address of a server's next hop.
pub(super) const ASK_FOR: Duration = Duration::from_secs(3);

/// Says why no packet reaches a server. It waits at most for so long that the server's network answers.
pub(super) type ReachCheck = Box<dyn Fn(SocketAddr, Duration) -> Result<(), String> + Send + Sync>;

/// The ways to servers, which must be behind the switch's interfaces, since responses arrive there.
pub(super) struct Reach {
    indices: Vec<u32>,
    own: SocketAddr,
}

/// Why the switch cannot have a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReachError {
    #[error(transparent)]
    Server(#[from] NeighbourError),
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(
        "{server} is of another family than the switch's address {own}: in the kernel both are IPv4 or both IPv6"
    )]
    Family { server: SocketAddr, own: SocketAddr },
    #[error("{server} is reached by {interface}: name that interface too")]
    Interface {
        server: SocketAddr,
        interface: String,
    },
}

impl Reach {
    pub(super) fn of(interfaces: &Sourced<Vec<String>>, own: SocketAddr) -> Result<Self> {
        let indices = interfaces.value.iter().map(|name| {
            nix::net::if_::if_nametoindex(name.as_str()).map_err(|_| {
                let why = format!("there is no interface {name}: `ip link` lists those there are");
                interfaces.refused(why)
            })
        });
        Ok(Self {
            indices: indices.collect::<Result<_>>()?,
            own,
        })
    }

    /// The server's next hop.
    pub(super) fn to(
        &self,
        server: SocketAddr,
        patience: Duration,
    ) -> Result<Neighbour, ReachError> {
        let own = self.own;
        if server.is_ipv4() != own.is_ipv4() {
            return Err(ReachError::Family { server, own });
        }
        let neighbour = neighbour_of(server, patience)?;
        if !self.indices.contains(&neighbour.ifindex) {
            let interface = interface_name(neighbour.ifindex);
            return Err(ReachError::Interface { server, interface });
        }
        Ok(neighbour)
    }

    /// The check of a server that is about to be added.
    pub(super) fn check(reach: &Arc<Self>) -> ReachCheck {
        let reach = Arc::clone(reach);
        Box::new(move |server, patience| {
            let reached = reach.to(server, patience).map(drop);
            reached.map_err(|why| why.to_string())
        })
    }

    /// The error of a server that the settings name.
    pub(super) fn refused(
        &self,
        interfaces: &Sourced<Vec<String>>,
        why: ReachError,
    ) -> anyhow::Error {
        match why {
            ReachError::Interface { .. } | ReachError::Switch(_) => interfaces.refused(why),
            ReachError::Server(_) | ReachError::Family { .. } => usage("--server", why),
        }
    }
}

/// The name of an interface, or its number if it is gone.
pub(super) fn interface_name(ifindex: u32) -> String {
    let name = nix::net::if_::if_indextoname(ifindex);
    name.map_or_else(
        |_| ifindex.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The server's current next hop; the old one if the server is unreachable.
pub(super) fn known_again(server: Neighbour) -> Neighbour {
    let again: Result<Neighbour, NeighbourError> = neighbour_of(server.address, Duration::ZERO);
    again.unwrap_or(server)
}
