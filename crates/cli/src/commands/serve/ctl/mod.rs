//! The server's end of its control socket: a thread that listens, and one for each client.
//!
//! Nothing here runs on the server's threads. Each client has a few seconds, and their number is limited, so a client that hangs does not block
//! the others.

mod status;

use crate::commands::serve::config::Sourced;
use crate::ctl::place::{self, SocketKind, SocketState};
use crate::ctl::protocol::{
    CtlRequest, CtlResponse, REQUEST_BYTES_MAX, read_line, response_line, write_line,
};
use anyhow::Result;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(super) use status::Subject;

/// A process that answers over a control socket.
pub(crate) trait Responder: Send + Sync + 'static {
    /// The answer to a request.
    fn respond(&self, request: CtlRequest) -> CtlResponse;
}

/// The total time that a client gets.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients served at the same time; the server rejects further ones.
const CLIENTS_MAX: usize = 16;
/// Requests that one connection may make.
const REQUESTS_MAX: usize = 64;

/// Where to listen for control.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Do not listen.
    Off,
    /// At this path.
    At(PathBuf),
    /// At the path named by the server's port.
    ByPort,
}

/// A socket at its path, removed when dropped.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket's path, and the identity of the file that this process made there. Dropping this removes the file.
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The path stays if another process has taken it meanwhile.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl ControlSocket {
    /// Binds the socket of a server or a switch on `port`, if there is to be one. While the system has not chosen the port (0), only looks whether the
    /// directory is fit.
    pub(crate) fn bind(
        place: &Sourced<Place>,
        kind: SocketKind,
        port: u16,
    ) -> Result<Option<Self>> {
        let refused = |why: String| {
            place.refused(format!(
                "{why}: choose another path by --ctl PATH, or run with --no-ctl"
            ))
        };
        let uid = place::own_uid()
            .map_err(|error| refused(format!("cannot tell this process's user: {error}")))?;
        let path = match &place.value {
            Place::Off => return Ok(None),
            Place::At(path) => path.clone(),
            Place::ByPort => {
                let directory = place::directories(uid).swap_remove(0);
                place::make_own(&directory, uid).map_err(refused)?;
                if port == 0 {
                    return Ok(None);
                }
                place::socket(&directory, kind, port)
            }
        };
        Self::at(&path, uid).map(Some).map_err(refused)
    }

    fn at(path: &Path, uid: u32) -> Result<Self, String> {
        let shown = path.display();
        match place::look(path, uid)? {
            SocketState::Nothing => {}
            SocketState::Served => return Err(format!("a running server listens at {shown}")),
            SocketState::Stale => {
                fs::remove_file(path)
                    .map_err(|error| format!("cannot replace {shown}: {error}"))?;
            }
        }
        let failed = |error: io::Error| format!("cannot listen at {shown}: {error}");
        let listener = UnixListener::bind(path).map_err(failed)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let inode = fs::symlink_metadata(path).map_err(failed)?.ino();
        let file = SocketFile {
            path: path.to_owned(),
            inode,
        };
        Ok(Self { listener, file })
    }

    /// The socket's path.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Answers clients until the process ends. Dropping the returned value removes the socket.
    pub(crate) fn answer(self, subject: impl Responder) -> io::Result<SocketFile> {
        let Self { listener, file } = self;
        let uid = place::own_uid()?;
        let subject = Arc::new(subject);
        let clients = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new()
            .name("hw-ctl".into())
            .spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => accept(stream, uid, &subject, &clients),
                        // The process is probably out of descriptors; the thread retries when some are free.
                        Err(_) => std::thread::sleep(Duration::from_millis(100)),
                    }
                }
            })?;
        Ok(file)
    }
}

/// The place of one of the clients served at the same time.
struct Client(Arc<AtomicUsize>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(stream: UnixStream, uid: u32, subject: &Arc<impl Responder>, clients: &Arc<AtomicUsize>) {
    let before = clients.fetch_add(1, Ordering::Relaxed);
    let client = Client(Arc::clone(clients));
    let peer = getsockopt(&stream, PeerCredentials).map(|peer| peer.uid());
    let refusal = match peer {
        Ok(peer) if peer == uid || peer == 0 => None,
        _ => Some("only the server's own user, and root, control it"),
    };
    let refusal = refusal.or((before >= CLIENTS_MAX).then_some("too many clients; try again"));
    if let Some(why) = refusal {
        let _ = stream.set_nonblocking(true);
        let _ = write_line(&stream, &response_line(&Err(why.into())));
        return;
    }
    let subject = Arc::clone(subject);
    // Without a thread for it, the client finds its connection closed.
    let _ = std::thread::Builder::new()
        .name("hw-ctl-client".into())
        .spawn(move || {
            let _client = client;
            let _ = converse(&stream, &*subject);
        });
}

/// A stream with one deadline for all reads, which single bytes do not prolong.
struct Until<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

/// Answers the client's requests, one after the other.
fn converse(stream: &UnixStream, subject: &impl Responder) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let deadline = Instant::now() + PATIENCE;
    let mut reader = BufReader::new(Until { stream, deadline });
    for _ in 0..REQUESTS_MAX {
        match read_line(&mut reader, REQUEST_BYTES_MAX) {
            Ok(Some(line)) => write_line(
                stream,
                &response_line(
                    &CtlRequest::parse(&line).and_then(|request| subject.respond(request)),
                ),
            )?,
            Ok(None) => break,
            Err(error) => {
                return write_line(stream, &response_line(&Err(error.to_string())));
            }
        }
    }
    Ok(())
}
