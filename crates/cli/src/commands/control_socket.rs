//! The control socket of a process that the command runs.

use super::serve::config::Sourced;
use anyhow::Result;
use headway_ops::place::SocketKind;
use headway_ops::socket::{ControlPlace, ControlSocket};
use std::fmt::Display;

/// Binds the socket, as [`ControlSocket::bind`]. An error names the setting and the remedy.
pub(crate) fn bind(
    place: &Sourced<ControlPlace>,
    kind: SocketKind,
    name: impl Display,
) -> Result<Option<ControlSocket>> {
    ControlSocket::bind(&place.value, kind, &name.to_string()).map_err(|why| refused(place, &why))
}

/// An error about the socket, with the setting and the remedy.
pub(crate) fn refused(place: &Sourced<ControlPlace>, why: &str) -> anyhow::Error {
    place.refused(format!(
        "{why}: choose another path by --ctl PATH, or run with --no-ctl"
    ))
}
