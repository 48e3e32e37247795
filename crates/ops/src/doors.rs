//! Where a process answers about itself.

use std::io;
use std::net::SocketAddr;

use crate::http::{HttpAnswering, HttpServer};
use crate::place::SocketKind;
use crate::socket::{Answering, ControlPlace, ControlSocket};
use crate::subject::AskedSubject;

/// Where a process answers about itself: nowhere unless chosen.
#[derive(Clone, Debug, Default)]
pub struct StatusDoors {
    /// The control socket.
    pub control: ControlPlace,
    /// The address for Prometheus and browsers.
    pub metrics: Option<SocketAddr>,
}

/// Why a process cannot answer about itself.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// The control socket's path cannot be had.
    #[error("control socket: {0}: choose another path, or none")]
    Control(String),
    /// The address for metrics cannot be had.
    #[error("cannot listen at {addr} for metrics: {source}; choose another port")]
    Metrics {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A thread did not start.
    #[error("cannot start the thread that answers headway ctl or Prometheus: {0}")]
    Thread(#[source] io::Error),
}
headway_words::debug_is_display!(DoorError);

/// Doors that are bound, at which nobody answers yet.
#[derive(Debug)]
pub struct BoundDoors {
    socket: Option<ControlSocket>,
    http: Option<HttpServer>,
}

impl StatusDoors {
    /// Binds them for a process of this kind and [name](crate::place::socket).
    ///
    /// # Errors
    /// [`DoorError`].
    pub fn bind(&self, kind: SocketKind, name: &str) -> Result<BoundDoors, DoorError> {
        let socket = ControlSocket::bind(&self.control, kind, name).map_err(DoorError::Control)?;
        let http = self.metrics.map(|addr| {
            HttpServer::bind(addr).map_err(|source| DoorError::Metrics { addr, source })
        });
        Ok(BoundDoors {
            socket,
            http: http.transpose()?,
        })
    }
}

impl BoundDoors {
    /// Answers about the subject until what this returns is dropped.
    ///
    /// # Errors
    /// [`DoorError`].
    pub fn answer(self, subject: &AskedSubject) -> Result<OpenDoors, DoorError> {
        let control = self.socket.map(|socket| socket.answer(subject.clone()));
        let http = self.http.map(|http| http.answer(subject.clone()));
        Ok(OpenDoors {
            control: control.transpose().map_err(DoorError::Thread)?,
            http: http.transpose().map_err(DoorError::Thread)?,
        })
    }
}

/// The threads that answer. Dropping this ends them and removes the socket.
#[derive(Debug, Default)]
pub struct OpenDoors {
    control: Option<Answering>,
    http: Option<HttpAnswering>,
}

impl OpenDoors {
    /// The path of the control socket.
    #[must_use]
    pub fn control(&self) -> Option<&std::path::Path> {
        self.control.as_ref().map(Answering::path)
    }

    /// The address for Prometheus and browsers.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpAnswering::addr)
    }
}
