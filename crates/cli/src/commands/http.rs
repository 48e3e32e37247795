//! The port for Prometheus and browsers of a process that the command runs.

use super::serve::config::Sourced;
use anyhow::{Context, Result};
use headway_ops::http::{HttpAnswering, HttpServer, Site};
use std::net::SocketAddr;

/// Binds the port. An error names the setting and the remedy.
pub(crate) fn bind(place: &Sourced<SocketAddr>) -> Result<HttpServer> {
    HttpServer::bind(place.value).map_err(|error| {
        place.refused(format!(
            "cannot listen at {}: {error}; choose another port",
            place.value
        ))
    })
}

/// Answers until what this returns is dropped, and says where.
pub(crate) fn answer(server: HttpServer, site: impl Site) -> Result<HttpAnswering> {
    let answering = server.answer(site);
    let answering = answering.context("cannot start the thread that answers Prometheus")?;
    say(answering.addr());
    Ok(answering)
}

/// Says where Prometheus and browsers find the process.
pub(crate) fn say(at: SocketAddr) {
    say!("Prometheus finds it at http://{at}/metrics, and a browser at http://{at}/");
}
