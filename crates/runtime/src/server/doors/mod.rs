//! Where a server answers about itself: a control socket, an address for Prometheus and browsers, and the process's signals. All of it is the feature `ops`; a
//! server without it is read by its [`Observer`] alone.

mod metrics;
mod run;
mod stacks;
mod status;
mod unwind;

use std::net::SocketAddr;
use std::path::Path;

use headway_ops::doors::{BoundDoors, DoorError, OpenDoors, StatusDoors};
use headway_ops::place::SocketKind;
use headway_ops::socket::ControlPlace;
use headway_ops::subject::AskedSubject;
use prometheus_client::collector::Collector;

pub(super) use self::status::ServerSubject;
use super::{Builder, Server};

/// Where a builder has the server answer.
#[derive(Clone, Debug, Default)]
pub(super) struct ChosenDoors {
    /// The control socket, if that was chosen.
    control: Option<ControlPlace>,
    /// The address for Prometheus and browsers.
    metrics: Option<SocketAddr>,
}

/// What a running server answers with.
pub(super) struct ServerDoors {
    subject: AskedSubject,
    /// Whether the builder chose a control socket, or none.
    chooses_control: bool,
    open: OpenDoors,
}

impl ChosenDoors {
    /// Binds them for a server that listens there, before it starts.
    pub(super) fn bind(&self, addr: Option<SocketAddr>) -> Result<BoundDoors, DoorError> {
        let doors = StatusDoors {
            control: self.control.clone().unwrap_or_default(),
            metrics: self.metrics,
        };
        doors.bind(SocketKind::Server, &door_name(addr))
    }

    /// Nobody answers there yet.
    pub(super) fn of_server(&self, subject: ServerSubject) -> ServerDoors {
        ServerDoors {
            subject: AskedSubject::of(subject),
            chooses_control: self.control.is_some(),
            open: OpenDoors::default(),
        }
    }
}

impl<S, D> Builder<S, D> {
    /// Answers `headway ctl` and `headway top` while the server runs, on a thread of its own: at a path, at the [usual place](ControlPlace::Usual) by its port, or
    /// nowhere. Nowhere unless chosen, except that [`Server::run`] chooses the usual place. Only the user of the process, and root, are answered.
    pub fn control(mut self, place: impl Into<ControlPlace>) -> Self {
        self.doors.control = Some(place.into());
        self
    }

    /// Answers Prometheus at `http://ADDR:PORT/metrics`, and browsers at `http://ADDR:PORT/`, on threads of their own; port 0 lets the system choose.
    /// Whoever reaches the address may read. A program with a registry of its own registers [`Server::collector`] there instead.
    pub fn metrics(mut self, addr: SocketAddr) -> Self {
        self.doors.metrics = Some(addr);
        self
    }
}

impl Server {
    /// Its counts for a program's own [`Registry`](prometheus_client::registry::Registry): `registry.register_collector(Box::new(server.collector()))`. They are read
    /// when they are asked for.
    #[must_use]
    pub fn collector(&self) -> impl Collector + Clone + use<> {
        self.doors.subject.clone()
    }

    /// The address where Prometheus and browsers find it, if the [builder](Builder::metrics) chose one.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.doors.open.metrics()
    }

    /// The path of its control socket, if the [builder](Builder::control) chose one.
    #[must_use]
    pub fn control_path(&self) -> Option<&Path> {
        self.doors.open.control()
    }

    /// Answers at these doors from now on.
    pub(super) fn opened(mut self, doors: BoundDoors) -> Result<Self, DoorError> {
        self.doors.open = doors.answer(&self.doors.subject)?;
        Ok(self)
    }
}

/// The name of the usual control socket: the port, or the process of a server that has none.
fn door_name(addr: Option<SocketAddr>) -> String {
    addr.map_or_else(
        || std::process::id().to_string(),
        |addr| addr.port().to_string(),
    )
}
