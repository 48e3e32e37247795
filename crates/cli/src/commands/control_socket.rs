//! The control socket of a process that the command runs.

use super::serve::config::Sourced;
use anyhow::Result;
use headway_ctl::place::SocketKind;
use headway_ctl::socket::{ControlSocket, Place};

/// Binds the socket, as [`ControlSocket::bind`]. An error names the setting and the remedy.
pub(crate) fn bind(
    place: &Sourced<Place>,
    kind: SocketKind,
    port: u16,
) -> Result<Option<ControlSocket>> {
    ControlSocket::bind(&place.value, kind, port).map_err(|why| {
        place.refused(format!(
            "{why}: choose another path by --ctl PATH, or run with --no-ctl"
        ))
    })
}
