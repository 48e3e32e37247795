//! What a builder is told of doors, and what a server says of them.

use std::net::SocketAddr;
use std::path::Path;

use headway_ops::doors::{BoundDoors, DoorError};
use headway_ops::socket::ControlPlace;
use prometheus_client::collector::Collector;

use crate::server::Server;
use crate::server::builder::Builder;

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
    pub(in crate::server) fn opened(mut self, doors: BoundDoors) -> Result<Self, DoorError> {
        self.doors.open = doors.answer(&self.doors.subject)?;
        Ok(self)
    }
}
