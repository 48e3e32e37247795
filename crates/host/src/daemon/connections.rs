//! The connections of those who may register. Who it is comes first: nobody else's connection stays, and nothing of it is read.

use super::closer::{Closer, ForeignFd};
use super::listener::HostListener;
use crate::message::DaemonMessage;
use crate::packet::{self, HostPacket};
use headway_ops::descriptors::AcceptFailures;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{SockFlag, getsockopt, sockopt::PeerCredentials};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The time after which a connection without a registration is closed, ns.
const SILENT_NS: u64 = 5_000_000_000;
/// The most connections at once, registered or not.
const CONNECTIONS_MAX: usize = 256;
/// The most of them, without a registration, of one user other than root and the daemon's.
const SILENT_MAX: usize = 16;

/// The token of the listening socket.
pub(super) const LISTENER: u64 = 0;
/// The token of the event that ends the thread.
pub(super) const WAKES: u64 = 1;
/// Connections have even tokens; the end of a connection's process has the odd token after it.
const FIRST: u64 = 2;

/// Who made a connection, as the kernel tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connected {
    pub(super) pid: i32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

pub(super) struct Connection {
    pub(super) socket: ForeignFd,
    pub(super) who: Connected,
    since_ns: u64,
    pub(super) registered: bool,
}

/// All connections, and the events of the thread that serves them.
pub(super) struct Connections {
    pub(super) epoll: Epoll,
    open: HashMap<u64, Connection>,
    next: u64,
    closer: Closer,
    pub(super) own_uid: u32,
    failures: AcceptFailures,
    /// Until when the listening socket is not heard, ns: its connections cannot be accepted, and stay ready.
    deaf_until_ns: Option<u64>,
}

impl Connections {
    /// No connection yet. `path`: where it listens.
    pub(super) fn new(
        own_uid: u32,
        listener: &HostListener,
        path: &Path,
        wakes: &EventFd,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener.socket, ready_for(LISTENER))?;
        epoll.add(wakes, ready_for(WAKES))?;
        Ok(Self {
            epoll,
            open: HashMap::new(),
            next: FIRST,
            closer: Closer::default(),
            own_uid,
            failures: AcceptFailures::new(format!("the daemon at {}", path.display())),
            deaf_until_ns: None,
        })
    }

    /// Whether [`Self::listen_again`] is due soon.
    pub(super) fn are_deaf(&self) -> bool {
        self.deaf_until_ns.is_some()
    }

    /// Hears the listening socket again a while after a connection could not be accepted.
    pub(super) fn listen_again(&mut self, listener: &HostListener, now_ns: u64) {
        if self
            .deaf_until_ns
            .is_some_and(|until_ns| now_ns >= until_ns)
            && self
                .epoll
                .add(&listener.socket, ready_for(LISTENER))
                .is_ok()
        {
            self.deaf_until_ns = None;
        }
    }

    fn cannot_accept(&mut self, listener: &HostListener, now_ns: u64, error: &io::Error) {
        if error.kind() == io::ErrorKind::WouldBlock {
            return;
        }
        self.failures.tell(error);
        if self.epoll.delete(&listener.socket).is_ok() {
            let retry_ns = AcceptFailures::RETRY.as_nanos() as u64;
            self.deaf_until_ns = Some(now_ns + retry_ns);
        }
    }

    /// A token that no connection had.
    pub(super) fn new_id(&mut self) -> u64 {
        self.next += 2;
        self.next - 2
    }

    pub(super) fn get(&self, id: u64) -> Option<&Connection> {
        self.open.get(&id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Connection> {
        self.open.values()
    }

    /// Accepts the connections of those who may register.
    pub(super) fn accept(
        &mut self,
        listener: &HostListener,
        now_ns: u64,
        may_register: impl Fn(Connected) -> bool,
    ) {
        self.accept_from(listener, now_ns, may_register, || {
            packet::accept(&listener.socket, SockFlag::SOCK_NONBLOCK)
        });
    }

    fn accept_from(
        &mut self,
        listener: &HostListener,
        now_ns: u64,
        may_register: impl Fn(Connected) -> bool,
        next: impl Fn() -> io::Result<OwnedFd>,
    ) {
        loop {
            let socket = match next() {
                Ok(socket) => self.closer.keep(socket),
                Err(error) => return self.cannot_accept(listener, now_ns, &error),
            };
            let Ok(who) = getsockopt(&socket, PeerCredentials) else {
                continue;
            };
            let who = Connected {
                pid: who.pid(),
                uid: who.uid(),
                gid: who.gid(),
            };
            if let Err(why) = self.check(who, may_register(who)) {
                refuse(&socket, &why);
                continue;
            }
            let id = self.new_id();
            let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
            let event = EpollEvent::new(interest, id);
            if self.epoll.add(&socket, event).is_ok() {
                let connection = Connection {
                    socket,
                    who,
                    since_ns: now_ns,
                    registered: false,
                };
                self.open.insert(id, connection);
            }
        }
    }

    fn check(&self, who: Connected, may_register: bool) -> Result<(), String> {
        let Connected { uid, gid, .. } = who;
        if !may_register {
            return Err(format!(
                "user {uid} may register no application: add it to an application's `users` in the daemon's settings, or its group {gid} to `groups`"
            ));
        }
        let silent = self.open.values();
        let silent = silent.filter(|one| !one.registered && one.who.uid == uid);
        let is_trusted = uid == self.own_uid || uid == 0;
        if !is_trusted && silent.count() >= SILENT_MAX {
            return Err(format!(
                "{SILENT_MAX} connections of user {uid} are silent: register with them, or close them"
            ));
        }
        if self.open.len() >= CONNECTIONS_MAX {
            return Err("too many applications are connected: try again later".into());
        }
        Ok(())
    }

    /// The next packet of a connection, with its descriptors; as [`packet::receive`].
    pub(super) fn receive(&self, connection: &Connection) -> io::Result<Option<ForeignPacket>> {
        let packet = packet::receive(&connection.socket, false)?;
        Ok(
            packet.map(|HostPacket { bytes, fds, fault }| ForeignPacket {
                bytes,
                fds: fds.into_iter().map(|fd| self.closer.keep(fd)).collect(),
                fault,
            }),
        )
    }

    /// Records that the application at this connection is registered.
    pub(super) fn register(&mut self, id: u64) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.registered = true;
        }
    }

    /// Closes a connection, if it is there.
    pub(super) fn remove(&mut self, id: u64) {
        if let Some(connection) = self.open.remove(&id) {
            // It is closed later, and must be heard no more.
            let _ = self.epoll.delete(connection.socket.as_fd());
        }
    }

    /// Closes the connections that have been silent for too long.
    pub(super) fn remove_silent(&mut self, now_ns: u64) {
        let is_silent =
            |one: &Connection| !one.registered && now_ns.saturating_sub(one.since_ns) >= SILENT_NS;
        let silent = self.open.iter().filter(|(_, one)| is_silent(one));
        let silent: Vec<u64> = silent.map(|(&id, _)| id).collect();
        for id in silent {
            self.remove(id);
        }
    }
}

fn ready_for(token: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, token)
}

/// A packet of a connection.
pub(super) struct ForeignPacket {
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<ForeignFd>,
    pub(super) fault: Option<&'static str>,
}

/// Tells who connected why the registration is refused.
pub(super) fn refuse(socket: impl AsFd, why: &str) {
    let message = DaemonMessage::Refused(why.to_owned()).packet();
    let _ = packet::send(socket, &message, &[]);
}

#[cfg(test)]
mod tests {
    use super::super::event::event;
    use super::*;
    use nix::errno::Errno;
    use nix::sys::epoll::EpollTimeout;

    /// A connection that cannot be accepted stays ready: a thread that heard it would not sleep.
    #[test]
    fn a_socket_that_cannot_be_accepted_from_is_left_alone_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.sock");
        let listener = HostListener::bind(&path, &[]).unwrap();
        let wakes = event().unwrap();
        let own_uid = super::super::access::own_uid();
        let mut connections = Connections::new(own_uid, &listener, &path, &wakes).unwrap();
        let _client = packet::connect_to(&path).unwrap();
        let is_ready = |connections: &Connections| {
            let mut events = [EpollEvent::empty()];
            connections.epoll.wait(&mut events, EpollTimeout::ZERO) == Ok(1)
        };
        assert!(is_ready(&connections));
        let failing = || Err(Errno::EMFILE.into());
        connections.accept_from(&listener, 1, |_| true, failing);
        assert!(connections.are_deaf() && !is_ready(&connections));
        let retry_ns = AcceptFailures::RETRY.as_nanos() as u64;
        connections.listen_again(&listener, retry_ns);
        assert!(connections.are_deaf() && !is_ready(&connections));
        connections.listen_again(&listener, 1 + retry_ns);
        assert!(!connections.are_deaf() && is_ready(&connections));
        connections.accept(&listener, 2 + retry_ns, |_| true);
        assert!(!connections.are_deaf() && !is_ready(&connections));
        assert_eq!(connections.all().count(), 1);
    }
}
