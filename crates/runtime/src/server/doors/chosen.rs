//! The doors that a builder chose, and those of a running server.

use std::net::SocketAddr;

use headway_ops::doors::{BoundDoors, DoorError, OpenDoors, StatusDoors};
use headway_ops::place::SocketKind;
use headway_ops::socket::ControlPlace;
use headway_ops::subject::AskedSubject;

/// Where a builder has the server answer.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct ChosenDoors {
    /// The control socket, if that was chosen.
    pub(super) control: Option<ControlPlace>,
    /// The address for Prometheus and browsers.
    pub(super) metrics: Option<SocketAddr>,
}

/// What a running server answers with.
pub(in crate::server) struct ServerDoors {
    pub(super) subject: AskedSubject,
    /// Whether the builder chose a control socket, or none.
    pub(super) chooses_control: bool,
    pub(super) open: OpenDoors,
}

impl ChosenDoors {
    /// Binds them for a server that listens there, before it starts.
    pub(in crate::server) fn bind(
        &self,
        addr: Option<SocketAddr>,
    ) -> Result<BoundDoors, DoorError> {
        let doors = StatusDoors {
            control: self.control.clone().unwrap_or_default(),
            metrics: self.metrics,
        };
        doors.bind(SocketKind::Server, &door_name(addr))
    }

    /// Nobody answers there yet.
    pub(in crate::server) fn closed(&self, subject: AskedSubject) -> ServerDoors {
        ServerDoors {
            subject,
            chooses_control: self.control.is_some(),
            open: OpenDoors::default(),
        }
    }
}

/// The name of the usual control socket: the port, or the process of a server that has none.
pub(super) fn door_name(addr: Option<SocketAddr>) -> String {
    addr.map_or_else(
        || std::process::id().to_string(),
        |addr| addr.port().to_string(),
    )
}
