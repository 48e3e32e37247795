//! Programs without support for the daemon: the daemon confines all their threads to the granted cores.
//!
//! The process registers itself and then runs the program in its own place, so that its exit status, its signals and its terminal are the
//! program's. The daemon confines every thread of it and of its descendants, by a control group where it may make one, and gives them only the idle
//! time of their cores. While the program has no core its threads share one.

use crate::client::{ClientError, ask};
use crate::message::{ClientMessage, ProgramRegistration};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Registers this process as a batch program, which gets the idle time of its cores. Call [`run`] next.
///
/// # Errors
/// [`ClientError`].
pub fn register(socket: &Path, name: &str, cores: Option<usize>) -> Result<(), ClientError> {
    let message = ClientMessage::Program(ProgramRegistration {
        name: name.to_owned(),
        cores,
    });
    let welcome = ask(socket, &message, &[])?;
    // The connection ends with this program; the daemon then follows the process.
    drop(welcome);
    Ok(())
}

/// Runs a program in place of this one. Returns only the error.
pub fn run(program: &[String]) -> io::Error {
    let [program, arguments @ ..] = program else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
    };
    Command::new(program).args(arguments).exec()
}
