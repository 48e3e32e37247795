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
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt::PeerCredentials};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use headway_machine::Clock;

/// The pause between two attempts to reach a daemon, ns.
const RETRY_NS: u64 = 20_000_000;
/// The pause after a refusal, ns. It may be another daemon's that comes next, or this one's settings may change.
const REFUSED_RETRY_NS: u64 = 1_000_000_000;

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
    /// A daemon may listen at the socket, which is closed to this user.
    #[error("may not connect to {}: {source}; a daemon of another user has it: have user {uid} named in an application's `users`", path.display())]
    Closed {
        /// The socket.
        path: PathBuf,
        /// This process' user.
        uid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// Neither root's daemon nor this user's listens at the socket.
    #[error("user {uid} listens at {}, who is neither root nor this user: nothing is registered there", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Who listens.
        uid: u32,
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
    let no_daemon = |source: io::Error| {
        let path = path.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            let uid = own_thread::own_uid();
            return ClientError::Closed { path, uid, source };
        }
        ClientError::NoDaemon { path, source }
    };
    let protocol = |why: &str| ClientError::Protocol {
        path: path.into(),
        why: why.into(),
    };
    let socket = packet::connect_to(path).map_err(no_daemon)?;
    check_owner(path, &socket)?;
    let answer = packet::ask(&socket, &message.packet(), fds).map_err(no_daemon)?;
    let Some(HostPacket { bytes, fds, .. }) = answer else {
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
            why: headway_words::escaped(&why),
        }),
        DaemonMessage::Farewell {} => Err(protocol("it is about to end")),
    }
}

/// An application trusts its daemon with its memory: it gives it to root and to its own user.
fn check_owner(path: &Path, socket: &OwnedFd) -> Result<(), ClientError> {
    let peer = getsockopt(socket, PeerCredentials).map_err(|errno| ClientError::System {
        what: "see whose daemon listens",
        source: errno.into(),
    })?;
    let own = own_thread::own_uid();
    if own == 0 || peer.uid() == 0 || peer.uid() == own {
        return Ok(());
    }
    Err(ClientError::Stranger {
        path: path.into(),
        uid: peer.uid(),
    })
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

/// Watches the daemon from a thread of its own, and has the next daemon take the kthreads over. Until then they keep their cores where the daemon died, and
/// run on any where it ended in order.
pub(super) fn watch(
    links: Arc<Links>,
    path: PathBuf,
    connection: Arc<DaemonConnection>,
) -> Result<(), ClientError> {
    let watching = thread::Builder::new().name("hw-host".into());
    let watching = watching.spawn(move || {
        loop {
            let socket = Arc::clone(&connection.socket());
            let is_in_order = says_farewell(&socket);
            drop(socket);
            if links.is_closed() {
                break;
            }
            links.set_alone(true);
            if is_in_order {
                run_free(&links);
            }
            let Some(socket) = come_again(&links, &path, Clock::global()) else {
                break;
            };
            *connection.socket() = Arc::new(socket);
            if links.is_closed() {
                // Its end met the connection before.
                connection.shut_down();
            }
        }
        // The application closed.
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

/// Retries until a daemon takes the application over. `None` when the application has closed.
fn come_again(links: &Links, path: &Path, clock: Clock) -> Option<OwnedFd> {
    let mut successor = Successor::of(links, path, clock);
    loop {
        match successor.step() {
            SuccessorStep::Waits { patience_ns } => {
                thread::sleep(Duration::from_nanos(patience_ns));
            }
            SuccessorStep::Found(socket) => return Some(socket),
            SuccessorStep::Ends => return None,
        }
    }
}

/// The search for the successor of a daemon that is gone.
struct Successor<'a> {
    links: &'a Links,
    path: &'a Path,
    message: ClientMessage,
    clock: Clock,
    /// When the next attempt is due, ns.
    due_ns: u64,
    /// Whether a daemon has refused the application, and it said so.
    is_refused: bool,
}

/// What came of a step of the search.
enum SuccessorStep {
    /// No daemon yet, or one that refuses: the next attempt is due in so many ns.
    Waits { patience_ns: u64 },
    /// A daemon took the application over, on this connection.
    Found(OwnedFd),
    /// The application has closed.
    Ends,
}

impl<'a> Successor<'a> {
    /// The first attempt is due at once.
    fn of(links: &'a Links, path: &'a Path, clock: Clock) -> Self {
        Self {
            links,
            path,
            message: ClientMessage::Resume(registration(&links.options, links.lines.kthreads())),
            clock,
            due_ns: 0,
            is_refused: false,
        }
    }

    /// Makes an attempt, if one is due.
    fn step(&mut self) -> SuccessorStep {
        let now_ns = self.clock.now_ns();
        if self.links.is_closed() {
            return SuccessorStep::Ends;
        }
        if now_ns >= self.due_ns {
            match self.attempt() {
                Ok(welcome) => return SuccessorStep::Found(self.join(welcome)),
                Err(refusal @ ClientError::Refused { .. }) => {
                    self.refused(&refusal);
                    self.due_ns = now_ns + REFUSED_RETRY_NS;
                }
                Err(_) => self.due_ns = now_ns + RETRY_NS,
            }
        }
        SuccessorStep::Waits {
            patience_ns: self.due_ns - now_ns,
        }
    }

    fn attempt(&self) -> Result<Welcome, ClientError> {
        let lanes = self.links.network.iter().map(|network| &network.memory);
        let memory: Vec<&OwnedFd> = [&self.links.memory].into_iter().chain(lanes).collect();
        ask(self.path, &self.message, &memory)
    }

    /// Runs on any core, as before it registered: this daemon gives its cores to others.
    fn refused(&mut self, refusal: &ClientError) {
        if self.is_refused {
            return;
        }
        self.is_refused = true;
        headway_words::remark!(
            "headway: application '{}' runs on any core until a daemon takes it over: {refusal}",
            self.links.options.name
        );
        run_free(self.links);
    }

    /// Goes on under the daemon that answered.
    fn join(&self, welcome: Welcome) -> OwnedFd {
        if let Some(doorbell) = welcome.fds.get(1) {
            own_thread::replace(&self.links.doorbell, doorbell);
        }
        self.links.set_alone(false);
        welcome.socket
    }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
    };
    use std::cell::Cell;

    thread_local! {
        static NOW_NS: Cell<u64> = const { Cell::new(1) };
    }

    /// The time by a clock that a test sets.
    fn at(now_ns: u64) -> Clock {
        NOW_NS.set(now_ns);
        Clock::given(|| NOW_NS.get())
    }

    fn doorbell() -> OwnedFd {
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .expect("a counter")
            .into()
    }

    fn links() -> Links {
        let (memory, lines) = SharedLines::create(2).expect("memory for its lines");
        let home = home().expect("this thread's cores");
        Links::new(
            lines,
            memory,
            doorbell(),
            None,
            ClientOptions::new("kv", 2),
            home,
        )
    }

    /// A daemon that takes one application over, or refuses it, and then is gone.
    struct OneAnswer(OwnedFd);

    impl OneAnswer {
        fn listen_at(path: &Path) -> Self {
            let fd = socket(
                AddressFamily::Unix,
                SockType::SeqPacket,
                SockFlag::SOCK_CLOEXEC,
                None,
            );
            let fd = fd.expect("a socket");
            let address = UnixAddr::new(path).expect("a short path");
            bind(fd.as_raw_fd(), &address).expect("a free path");
            listen(&fd, Backlog::new(1).expect("one")).expect("it listens");
            Self(fd)
        }

        /// What the application says, and the memory that it brings.
        fn give(self, message: &DaemonMessage, fds: &[&OwnedFd]) -> HostPacket {
            let connection = packet::accept(&self.0, SockFlag::empty()).expect("it comes");
            let asked = packet::receive(&connection, true).expect("a packet");
            packet::send(&connection, &message.packet(), fds).expect("it is read");
            asked.expect("before the end of the connection")
        }
    }

    fn waits_ns(step: &SuccessorStep) -> Option<u64> {
        match step {
            SuccessorStep::Waits { patience_ns } => Some(*patience_ns),
            _ => None,
        }
    }

    #[test]
    fn a_daemon_that_comes_later_takes_the_application_over_when_an_attempt_is_due() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("host.sock");
        let links = links();
        links.set_alone(true);
        let mut successor = Successor::of(&links, &path, at(1_000));
        assert_eq!(waits_ns(&successor.step()), Some(RETRY_NS), "no daemon");
        let daemon = OneAnswer::listen_at(&path);
        at(1_000 + RETRY_NS - 1);
        assert_eq!(waits_ns(&successor.step()), Some(1), "no attempt is due");
        let (memory, _) = SharedLines::create(2).expect("memory");
        let bell = doorbell();
        let registered = DaemonMessage::Registered {
            kthreads: 2,
            network: None,
        };
        at(1_000 + RETRY_NS);
        let asked = thread::scope(|scope| {
            let daemon = scope.spawn(|| daemon.give(&registered, &[&memory, &bell]));
            assert!(matches!(successor.step(), SuccessorStep::Found(_)));
            daemon.join().expect("it answered")
        });
        let resumed = ClientMessage::parse(&asked.bytes).expect("a message");
        assert!(matches!(resumed, ClientMessage::Resume(_)), "{resumed:?}");
        assert_eq!(asked.fds.len(), 1, "it brings its memory");
        assert!(!links.is_alone());
        // The daemon sees what the application rings from now on.
        own_thread::ring(std::os::fd::AsFd::as_fd(&links.doorbell));
        let mut rung = [0; 8];
        assert_eq!(nix::unistd::read(&bell, &mut rung), Ok(8));
    }

    /// The application runs on any core meanwhile, and comes again.
    #[test]
    fn a_daemon_that_refuses_is_asked_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("host.sock");
        let links = links();
        links.set_alone(true);
        let daemon = OneAnswer::listen_at(&path);
        let refused = DaemonMessage::Refused("it is full".into());
        let mut successor = Successor::of(&links, &path, at(1_000));
        thread::scope(|scope| {
            scope.spawn(|| daemon.give(&refused, &[]));
            let patience_ns = waits_ns(&successor.step());
            assert_eq!(patience_ns, Some(REFUSED_RETRY_NS));
        });
        assert!(links.is_alone() && links.is_free(), "nobody took it over");
        std::fs::remove_file(&path).expect("the daemon is gone");
        let daemon = OneAnswer::listen_at(&path);
        let registered = DaemonMessage::Registered {
            kthreads: 2,
            network: None,
        };
        at(1_000 + REFUSED_RETRY_NS);
        thread::scope(|scope| {
            scope.spawn(|| daemon.give(&registered, &[]));
            assert!(matches!(successor.step(), SuccessorStep::Found(_)));
        });
        assert!(!links.is_alone() && !links.is_free());
    }

    #[test]
    fn an_application_that_closes_looks_for_no_daemon_any_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("host.sock");
        let links = links();
        let mut successor = Successor::of(&links, &path, at(1_000));
        assert_eq!(waits_ns(&successor.step()), Some(RETRY_NS));
        // Nobody accepts: an attempt would wait for ever.
        let _daemon = OneAnswer::listen_at(&path);
        links.close();
        at(1_000 + RETRY_NS);
        assert!(matches!(successor.step(), SuccessorStep::Ends));
    }
}
