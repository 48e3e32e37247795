//! The answering end of a control socket: a thread that listens, and one for each client.
//!
//! Nothing here runs on a server's own threads. Each client has a few seconds, and their number is limited, so a client that hangs does not block
//! the others.

use crate::descriptors::AcceptFailures;
use crate::place::{self, SocketKind, SocketState};
use crate::protocol::{
    CtlRequest, CtlResponse, REQUEST_BYTES_MAX, read_line, response_line, write_line,
};
use headway_machine::thread::fork::ParentsOnly;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{Shutdown, getsockopt, shutdown};
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process that answers over a control socket.
pub trait Responder: Send + Sync + 'static {
    /// The answer to a request.
    fn respond(&self, request: CtlRequest) -> CtlResponse;
}

impl<R: Responder> Responder for Arc<R> {
    fn respond(&self, request: CtlRequest) -> CtlResponse {
        (**self).respond(request)
    }
}

/// The total time that a client gets.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients served at the same time; the server rejects further ones.
const CLIENTS_MAX: usize = 16;
/// Requests that one connection may make.
const REQUESTS_MAX: usize = 64;

/// Where to listen for control.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ControlPlace {
    /// Nowhere.
    #[default]
    Off,
    /// At this path.
    At(PathBuf),
    /// Where `headway ctl` looks: in a directory of the user's own, by the server's port, or the pool's process.
    Usual,
}

impl From<&str> for ControlPlace {
    fn from(path: &str) -> Self {
        Self::At(path.into())
    }
}

impl From<&Path> for ControlPlace {
    fn from(path: &Path) -> Self {
        Self::At(path.into())
    }
}

impl From<PathBuf> for ControlPlace {
    fn from(path: PathBuf) -> Self {
        Self::At(path)
    }
}

/// A socket at its path, removed when dropped. Nobody answers yet.
#[derive(Debug)]
pub struct ControlSocket {
    listener: Arc<ParentsOnly<UnixListener>>,
    file: SocketFile,
}

/// The socket's path, and the identity of the file that this process made there. Dropping this removes the file.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
    process: u32,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A child of a fork leaves its parent's.
        let is_own = self.process == std::process::id();
        // The path stays if another process has taken it meanwhile.
        if is_own && fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl ControlSocket {
    /// Binds the socket of the process of this kind and [name](place::socket), if there is to be one.
    ///
    /// # Errors
    /// In a sentence without the remedy: the process's user is unknown, the directory is not fit, or the path is taken.
    pub fn bind(
        place: &ControlPlace,
        kind: SocketKind,
        name: &str,
    ) -> Result<Option<Self>, String> {
        let own_uid = || {
            place::own_uid().map_err(|error| format!("cannot tell this process's user: {error}"))
        };
        match place {
            ControlPlace::Off => Ok(None),
            ControlPlace::At(path) => Self::at(path, own_uid()?).map(Some),
            ControlPlace::Usual => {
                let uid = own_uid()?;
                let directory = place::directories(uid).swap_remove(0);
                place::make_own(&directory, uid)?;
                Self::at(&place::socket(&directory, kind, name), uid).map(Some)
            }
        }
    }

    fn at(path: &Path, uid: u32) -> Result<Self, String> {
        let shown = path.display();
        match place::look(path, uid)? {
            SocketState::Nothing => {}
            SocketState::Served => return Err(format!("a running process listens at {shown}")),
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
            process: std::process::id(),
        };
        Ok(Self {
            listener: Arc::new(ParentsOnly::new(listener)),
            file,
        })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Answers clients until the returned value is dropped, which also removes the socket.
    ///
    /// # Errors
    /// The system has no thread or descriptor for it.
    pub fn answer(self, responder: impl Responder) -> io::Result<Answering> {
        let Self { listener, file } = self;
        let uid = place::own_uid()?;
        let responder = Arc::new(responder);
        let clients = Arc::new(AtomicUsize::new(0));
        let ending = Arc::new(AtomicBool::new(false));
        let (accepted, ends) = (Arc::clone(&listener), Arc::clone(&ending));
        let shown = format!("the control socket {}", file.path.display());
        let mut failures = AcceptFailures::new(shown);
        let thread = std::thread::Builder::new()
            .name("hw-ctl".into())
            .spawn(move || {
                for stream in accepted.incoming() {
                    match stream {
                        Ok(stream) => accept(stream, uid, &responder, &clients),
                        Err(_) if ends.load(Ordering::Acquire) => return,
                        Err(error) => {
                            failures.tell(&error);
                            std::thread::sleep(AcceptFailures::RETRY);
                        }
                    }
                }
            })?;
        let process = file.process;
        let accepts = AcceptThread {
            listener,
            thread: Some(thread),
            ending,
            process,
        };
        Ok(Answering {
            file,
            _accepts: accepts,
        })
    }
}

/// The thread that answers at a control socket. Dropping this removes the socket and ends the thread. A client that is still asking has its thread for
/// up to five seconds more.
#[derive(Debug)]
pub struct Answering {
    // Dropped first: a client that is not answered any more sees by it that the process ends in order.
    file: SocketFile,
    _accepts: AcceptThread,
}

/// The thread that accepts clients, until this is dropped.
#[derive(Debug)]
struct AcceptThread {
    listener: Arc<ParentsOnly<UnixListener>>,
    /// There until this is dropped.
    thread: Option<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
    /// The process that has the thread.
    process: u32,
}

impl Answering {
    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

impl Drop for AcceptThread {
    fn drop(&mut self) {
        // In a child of a fork the thread is the parent's, and so is the socket: the descriptor is closed there, and its number may be another's.
        if self.process != std::process::id() {
            std::mem::forget(Arc::clone(&self.listener));
            return;
        }
        self.ending.store(true, Ordering::Release);
        // The thread's call returns, and so do later ones.
        if shutdown(self.listener.as_fd().as_raw_fd(), Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It does not panic, and there would be no remedy.
            let _ = thread.join();
        }
    }
}

/// The place of one of the clients served at the same time.
struct Client(Arc<AtomicUsize>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(
    stream: UnixStream,
    uid: u32,
    responder: &Arc<impl Responder>,
    clients: &Arc<AtomicUsize>,
) {
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
    let responder = Arc::clone(responder);
    // Without a thread for it, the client finds its connection closed.
    let _ = std::thread::Builder::new()
        .name("hw-ctl-client".into())
        .spawn(move || {
            let _client = client;
            let _ = converse(&stream, &*responder, Instant::now() + PATIENCE);
        });
}

/// Bytes of one write: within a longer one the kernel begins its timeout anew with each piece that fits.
const PIECE_BYTES: usize = 16 << 10;

/// A stream with one deadline for all reads and writes, which single bytes do not prolong.
#[derive(Clone, Copy)]
struct Until<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Until<'_> {
    /// # Errors
    /// The time is over.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let mut stream = self.stream;
        stream.write(&bytes[..bytes.len().min(PIECE_BYTES)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers the client's requests, one after the other.
fn converse(stream: &UnixStream, responder: &impl Responder, deadline: Instant) -> io::Result<()> {
    let stream = Until { stream, deadline };
    let mut reader = BufReader::new(stream);
    for _ in 0..REQUESTS_MAX {
        match read_line(&mut reader, REQUEST_BYTES_MAX) {
            Ok(Some(line)) => write_line(
                stream,
                &response_line(
                    &CtlRequest::parse(&line).and_then(|request| responder.respond(request)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with more than a socket holds.
    struct Endless;

    impl Responder for Endless {
        fn respond(&self, _: CtlRequest) -> CtlResponse {
            Ok(serde_json::Value::String("x".repeat(64 << 20)))
        }
    }

    /// Each read lets some of the answer through, so that no single write takes long.
    #[test]
    fn a_client_that_reads_little_by_little_is_left_when_its_time_is_over() {
        let (server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"{\"command\":\"status\"}\n").unwrap();
        let reads = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            let mut bytes = 0;
            while let Ok(read @ 1..) = client.read(&mut piece) {
                bytes += read;
                std::thread::sleep(Duration::from_millis(1));
            }
            bytes
        });
        let deadline = Instant::now() + Duration::from_millis(200);
        assert!(converse(&server, &Endless, deadline).is_err());
        drop(server);
        assert!(reads.join().unwrap() < 64 << 20);
    }
}
