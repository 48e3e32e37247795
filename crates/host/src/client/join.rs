//! Registration with a daemon, and again with its successor.

use super::links::{ClientOptions, Links};
use super::network::ClientNetwork;
use super::thread as own_thread;
use crate::lanes::SharedLanes;
use crate::memory::{MemoryError, SharedLines};
use crate::message::{ClientMessage, DaemonMessage, NetworkPlace, Registration};
use crate::packet::{self, HostPacket};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The pause between two attempts to reach a daemon.
const RETRY: Duration = Duration::from_millis(20);

/// Why an application's registration failed.
#[derive(thiserror::Error)]
pub enum ClientError {
    /// No daemon listens at the socket.
    #[error("no daemon listens at {}: {source}; start one by 'headway host', or name its socket", path.display())]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The daemon refused the application.
    #[error("the daemon at {} refuses: {why}", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// The daemon's reason.
        why: String,
    },
    /// The daemon's answer is malformed.
    #[error("the daemon at {}: {why}", path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// The error in it.
        why: String,
    },
    /// The memory that the daemon sent is unusable.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

headway_words::debug_is_display!(ClientError);

/// The daemon's answer.
pub(crate) struct Welcome {
    pub(crate) socket: OwnedFd,
    pub(crate) kthreads: usize,
    pub(crate) network: Option<NetworkPlace>,
    pub(crate) fds: Vec<OwnedFd>,
}

/// Sends a registration, and waits for the answer.
pub(crate) fn ask(
    path: &Path,
    message: &ClientMessage,
    fds: &[&OwnedFd],
) -> Result<Welcome, ClientError> {
    let no_daemon = |source| ClientError::NoDaemon {
        path: path.into(),
        source,
    };
    let protocol = |why: &str| ClientError::Protocol {
        path: path.into(),
        why: why.into(),
    };
    let socket = packet::connect_to(path).map_err(no_daemon)?;
    packet::send(&socket, &message.packet(), fds).map_err(no_daemon)?;
    let answer = packet::receive(&socket, true).map_err(no_daemon)?;
    let Some(HostPacket { bytes, fds }) = answer else {
        return Err(protocol("it hung up without an answer"));
    };
    match DaemonMessage::parse(&bytes).map_err(|why| protocol(&why))? {
        DaemonMessage::Registered { kthreads, network } => Ok(Welcome {
            socket,
            kthreads,
            network,
            fds,
        }),
        DaemonMessage::Refused(why) => Err(ClientError::Refused {
            path: path.into(),
            why,
        }),
        DaemonMessage::Farewell {} => Err(protocol("it is about to end")),
    }
}

/// The cores on which the calling thread may run.
pub(super) fn home() -> Result<CpuSet, ClientError> {
    sched_getaffinity(Pid::from_raw(0)).map_err(|errno: Errno| ClientError::System {
        what: "read the affinity of this thread",
        source: errno.into(),
    })
}

/// Registers an application.
pub(super) fn register(
    path: &Path,
    options: &ClientOptions,
) -> Result<(Links, OwnedFd), ClientError> {
    let home = home()?;
    let message = ClientMessage::Register(registration(options, options.kthreads));
    let Welcome {
        socket,
        kthreads,
        network,
        fds,
    } = ask(path, &message, &[])?;
    let mut fds = fds.into_iter();
    let protocol = |why: &str| ClientError::Protocol {
        path: path.into(),
        why: why.into(),
    };
    let (Some(memory), Some(doorbell)) = (fds.next(), fds.next()) else {
        return Err(protocol("it sent no memory and doorbell"));
    };
    let network = match (network, fds.next()) {
        (Some(place), Some(memory)) => {
            let lanes = SharedLanes::adopt(&memory, kthreads)?;
            Some(ClientNetwork::new(place, lanes, memory))
        }
        (None, _) if !options.network => None,
        _ => return Err(protocol("it sent no lanes: start a daemon of this version")),
    };
    let lines = SharedLines::adopt(&memory, kthreads)?;
    let links = Links::new(lines, memory, doorbell, network, options.clone(), home);
    Ok((links, socket))
}

fn registration(options: &ClientOptions, kthreads: usize) -> Registration {
    Registration {
        name: options.name.clone(),
        kthreads,
        guaranteed: options.guaranteed,
        probes: options.probes,
        network: options.network,
    }
}

/// The connection with a daemon or its successor.
#[derive(Debug)]
pub(super) struct DaemonConnection(Mutex<Arc<OwnedFd>>);

impl DaemonConnection {
    pub(super) fn new(socket: OwnedFd) -> DaemonConnection {
        DaemonConnection(Mutex::new(Arc::new(socket)))
    }

    fn socket(&self) -> MutexGuard<'_, Arc<OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the registration: the daemon and the thread that watches it both notice the shutdown.
    pub(super) fn shut_down(&self) {
        let _ = shutdown(self.socket().as_raw_fd(), Shutdown::Both);
    }
}

/// Watches the daemon from a thread of its own: when the daemon dies, the kthreads keep their cores, and the next daemon takes them over.
pub(super) fn watch(
    links: Arc<Links>,
    path: PathBuf,
    connection: Arc<DaemonConnection>,
) -> Result<(), ClientError> {
    let watching = thread::Builder::new().name("hw-host".into());
    let watching = watching.spawn(move || {
        loop {
            let socket = Arc::clone(&connection.socket());
            if says_farewell(&socket) || links.is_closed() {
                return run_free(&links);
            }
            drop(socket);
            links.set_alone(true);
            let Some(socket) = come_again(&links, &path) else {
                break;
            };
            *connection.socket() = Arc::new(socket);
            if links.is_closed() {
                // Its end met the connection before.
                connection.shut_down();
            }
        }
        // The application closed, or the next daemon refused it.
        run_free(&links);
    });
    watching.map(drop).map_err(|source| ClientError::System {
        what: "start the thread that watches the daemon",
        source,
    })
}

/// Waits for a message or the end of the daemon; returns whether it ends in order.
fn says_farewell(socket: &OwnedFd) -> bool {
    loop {
        match packet::receive(socket, true) {
            Ok(Some(packet)) => match DaemonMessage::parse(&packet.bytes) {
                Ok(DaemonMessage::Farewell {}) => return true,
                _ => continue,
            },
            Ok(None) | Err(_) => return false,
        }
    }
}

/// Retries until a daemon answers. `None` when it refuses, or the application has closed.
fn come_again(links: &Links, path: &Path) -> Option<OwnedFd> {
    let message = ClientMessage::Resume(registration(&links.options, links.lines.kthreads()));
    while !links.is_closed() {
        let lanes = links.network.iter().map(|network| &network.memory);
        let memory: Vec<&OwnedFd> = [&links.memory].into_iter().chain(lanes).collect();
        match ask(path, &message, &memory) {
            Ok(welcome) => {
                if let Some(doorbell) = welcome.fds.get(1) {
                    own_thread::replace(&links.doorbell, doorbell);
                }
                links.set_alone(false);
                return Some(welcome.socket);
            }
            Err(ClientError::Refused { .. }) => return None,
            Err(_) => thread::sleep(RETRY),
        }
    }
    None
}

/// Returns every kthread to the cores on which the process ran before.
fn run_free(links: &Links) {
    for kthread in 0..links.lines.kthreads() {
        if let Some(tid) = links.lines.line(kthread).tid() {
            let _ = sched_setaffinity(Pid::from_raw(tid as i32), &links.home);
        }
    }
    links.set_free();
}
