//! The control socket of a server, by which `headway ctl` reaches it.

use headway_ctl::place::SocketKind;
use headway_ctl::server::Subject;
use headway_ctl::socket::{Answering, ControlSocket, Place};
use headway_runtime::Server;

use crate::status::{CallFailure, HEADWAY_E_START};

/// The socket of a server that listens on `port`; none where the program asks for none, or the system has not chosen the port (0).
pub(crate) fn bind(place: &Place, port: u16) -> Result<Option<ControlSocket>, CallFailure> {
    ControlSocket::bind(place, SocketKind::Server, port).map_err(|why| {
        CallFailure::argument(format!(
            "headway_options.control: {why}: choose another path, or null for none"
        ))
    })
}

/// Answers for a server that has started, at the socket that was bound before, or at the one named by the port that the system chose.
pub(crate) fn answer(
    place: &Place,
    early: Option<ControlSocket>,
    server: &Server,
) -> Result<Option<Answering>, CallFailure> {
    let socket = match (early, server.local_addr()) {
        (None, Some(addr)) => bind(place, addr.port())?,
        (early, _) => early,
    };
    let Some(socket) = socket else {
        return Ok(None);
    };
    let answering = socket.answer(Subject::of(server));
    answering.map(Some).map_err(|error| {
        CallFailure::new(
            HEADWAY_E_START,
            format!("cannot start the thread that answers headway ctl: {error}"),
        )
    })
}
