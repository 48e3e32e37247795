//! The client's end of a control socket.

use crate::error::usage;
use anyhow::{Context, Result, anyhow};
use headway_ops::place::{self, SocketKind};
use headway_ops::protocol::{CtlRequest, ServerOrder, parse_response, read_line, write_line};
use headway_words::escaped;
use serde_json::Value;
use std::io::{BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A healthy server answers at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// Above the size of the largest server's status.
const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// The control socket of the server or pool that the user named, or of the only one.
pub(crate) fn find(server: Option<&str>) -> Result<PathBuf> {
    let uid = place::own_uid().context("cannot tell this process's user")?;
    match server {
        Some(text) => match text.parse::<u16>() {
            Ok(port) => by_port(port, uid),
            Err(_) => Ok(PathBuf::from(text)),
        },
        None => only_one(uid),
    }
}

/// An error about the choice of the server.
pub(super) fn no_server(why: impl std::fmt::Display) -> anyhow::Error {
    usage("--server", why)
}

fn by_port(port: u16, uid: u32) -> Result<PathBuf> {
    let found = place::find(uid, |directory| {
        place::socket(directory, SocketKind::Server, port)
    });
    let found = found.map_err(|why| no_server(format!("{why}: it is not asked")))?;
    found.ok_or_else(|| {
        no_server(format!(
            "no server of yours listens on port {port}: {}",
            looked(uid)
        ))
    })
}

fn only_one(uid: u32) -> Result<PathBuf> {
    let kinds = [SocketKind::Server, SocketKind::Pool];
    let running = kinds.map(|kind| place::running(uid, kind));
    let mut running = running.concat();
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err(no_server(format!(
            "no server of yours runs, and no pool with a control socket: {}",
            looked(uid)
        ))),
        _ => {
            let paths: Vec<_> = running
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Err(no_server(format!(
                "several servers or pools of yours run; name one by its port or path: {}",
                paths.join(", ")
            )))
        }
    }
}

/// The searched directories, and other reasons why no server was found.
fn looked(uid: u32) -> String {
    let directories = place::directories(uid);
    let shown: Vec<_> = directories
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!(
        "looked in {}; a server may have another socket (--ctl PATH), or none (--no-ctl)",
        shown.join(" and ")
    )
}

/// The status of whoever answers at a socket. `nobody` is the error with its flag for a reason why nobody is asked.
pub(crate) fn status_of(path: &Path, nobody: impl Fn(String) -> anyhow::Error) -> Result<Value> {
    ask(path, nobody, &CtlRequest::Status)?
        .map_err(|error| anyhow!("{} refuses: {error}", path.display()))
}

/// Where the server's suspended requests stand.
pub(super) fn stacks(path: &Path) -> Result<Value> {
    ask(path, no_server, &CtlRequest::Stacks)?
        .map_err(|error| anyhow!("{} refuses: {error}", path.display()))
}

/// Sets parameters and returns the changes. A refusal by the server is a usage error.
pub(super) fn set(path: &Path, params: Vec<(String, String)>) -> Result<Value> {
    ask(path, no_server, &CtlRequest::Set(params))?.map_err(|error| usage("set", error))
}

/// Gives a switch an order about a server. A refusal is a usage error.
pub(crate) fn order(
    path: &Path,
    order: ServerOrder,
    server: &str,
    nobody: impl Fn(String) -> anyhow::Error,
) -> Result<Value> {
    let request = CtlRequest::Server(order, server.to_owned());
    ask(path, nobody, &request)?.map_err(|error| usage("SERVER", error))
}

fn ask(
    path: &Path,
    nobody: impl Fn(String) -> anyhow::Error,
    request: &CtlRequest,
) -> Result<Result<Value, String>> {
    let place = path.display();
    let stream = UnixStream::connect(path)
        .map_err(|error| nobody(format!("nobody answers at {place}: {error}")))?;
    let uid = place::own_uid().context("cannot tell this process's user")?;
    place::check_peer(&stream, uid)
        .map_err(|why| nobody(format!("{place} is not asked: {why}")))?;
    let asked = || -> std::io::Result<Option<Vec<u8>>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let written = write_line(&stream, &request.line());
        // A server that rejects a client sends the reason before it reads a request.
        let line = read_line(&mut BufReader::new(&stream), RESPONSE_BYTES_MAX);
        line.or_else(|error| written.and(Err(error)))
    };
    let line = asked().map_err(|error| match error.kind() {
        // Its thread stands still, or it has no descriptor left for this client.
        ErrorKind::WouldBlock | ErrorKind::TimedOut => anyhow!(
            "whoever listens at {place} did not answer within {} s",
            PATIENCE.as_secs()
        ),
        _ => anyhow!("whoever listens at {place} does not answer: {error}"),
    })?;
    let line = line.with_context(|| format!("whoever listens at {place} hung up"))?;
    let answer = parse_response(&line);
    let answer = answer.map_err(|error| anyhow!("{place}: {}", escaped(&error.to_string())))?;
    Ok(match answer {
        Ok(value) => Ok(fit_for_terminals(value)),
        Err(refusal) => Err(escaped(&refusal)),
    })
}

/// What a peer says with all of its texts escaped.
fn fit_for_terminals(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escaped(&text)),
        Value::Array(items) => items.into_iter().map(fit_for_terminals).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            fields
                .map(|(key, value)| (escaped(&key), fit_for_terminals(value)))
                .collect()
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_that_a_peer_says_is_an_escape_sequence() {
        let said = json!({ "a\u{1b}[2J": ["\u{9b}31m", { "b": "\r\u{202e}c" }], "d": 5 });
        let shown = fit_for_terminals(said).to_string();
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'));
        assert!(
            shown.contains("31m") && shown.contains("\"d\":5"),
            "{shown}"
        );
    }
}
