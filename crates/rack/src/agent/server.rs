//! The server's end on a UDP port: the loop of an agent's thread.

use super::hub::random;
use super::key::AgentKey;
use super::message::{AGENT_PACKET_BYTES_MAX, OrderedDuty};
use super::session::{AgentSession, ServerStatus};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The interval between reports: a fifth of the silence after which the switch takes a server out of service.
const BEAT: Duration = Duration::from_millis(10);
/// The time without an accepted report after which an agent announces that the rack does not answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time that a leaving agent waits for the rack's confirmation.
const LEAVE: Duration = Duration::from_millis(200);
/// The switch checks every millisecond for servers that left. Requests that it sent before the check arrive during this time.
const SETTLE: Duration = Duration::from_millis(20);

/// Why an agent did not begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The system gave no socket that reaches the rack.
    #[error("cannot reach the rack at {rack}: {source}")]
    Socket {
        /// The rack's address for agents.
        rack: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// The callbacks of an agent into its server.
pub trait AgentEvents {
    /// Asks the server for its current status.
    fn status(&mut self) -> ServerStatus;

    /// Gives the server its duty. Requests come from `switch`.
    fn ordered(&mut self, order: &OrderedDuty, switch: SocketAddr);

    /// The rack accepted this agent, at first or again.
    fn joined(&mut self);

    /// The rack has accepted no report for a second: it does not run, or has another key. Called once until the rack accepts the agent.
    fn unanswered(&mut self);
}

/// Reports to the rack through a socket of [`connect_agent`] until `stopped`, then says that the server leaves, and returns when the switch
/// sends nothing more or after 200 ms.
pub fn run_agent(
    socket: &UdpSocket,
    rack: SocketAddr,
    key: AgentKey,
    stopped: &AtomicBool,
    events: &mut impl AgentEvents,
) {
    let mut agent = RunningAgent {
        session: AgentSession::new(key, random()),
        socket,
        rack,
        joined: false,
        accepted_at: Some(Instant::now()),
    };
    while !stopped.load(Ordering::Acquire) {
        let next = Instant::now() + BEAT;
        let status = events.status();
        agent.report(&status);
        agent.listen_until(next, events);
        if agent.accepted_at.is_some_and(|at| at.elapsed() > PATIENCE) {
            agent.accepted_at = None;
            agent.joined = false;
            events.unanswered();
        }
    }
    agent.leave(events);
}

/// A socket that reaches the rack from the server's own address, by which the rack knows the server. For a server on all addresses the system
/// chooses.
///
/// # Errors
/// [`AgentError`]
pub fn connect_agent(rack: SocketAddr, own: SocketAddr) -> Result<UdpSocket, AgentError> {
    let connected = || {
        let socket = UdpSocket::bind(SocketAddr::new(own.ip(), 0))?;
        socket.connect(rack)?;
        Ok(socket)
    };
    connected().map_err(|source| AgentError::Socket { rack, source })
}

struct RunningAgent<'a> {
    session: AgentSession,
    socket: &'a UdpSocket,
    rack: SocketAddr,
    joined: bool,
    /// When the rack last accepted a report, or the agent began. `None` once the agent has announced that the rack does not answer.
    accepted_at: Option<Instant>,
}

impl RunningAgent<'_> {
    /// Sends a report. The next report makes up for a lost one.
    fn report(&mut self, status: &ServerStatus) {
        let packet = self.session.report(status);
        let _ = self.socket.send(&packet);
    }

    /// Takes answers until `until`.
    fn listen_until(&mut self, until: Instant, events: &mut impl AgentEvents) {
        let mut buffer = [0; AGENT_PACKET_BYTES_MAX];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // A timeout of zero would block for ever.
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.take(&buffer[..length], events),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The rack's port is closed: it has not started, or it ended.
                Err(_) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return;
                }
            }
        }
    }

    fn take(&mut self, packet: &[u8], events: &mut impl AgentEvents) {
        // Strangers may send packets of another key; they are ignored.
        let Ok(Some(answer)) = self.session.answer(packet) else {
            return;
        };
        if !self.session.is_joined() {
            self.joined = false;
            // Reports at once, since waiting for the next beat would delay the session.
            let status = events.status();
            return self.report(&status);
        }
        self.accepted_at = Some(Instant::now());
        if !self.joined {
            self.joined = true;
            events.joined();
        }
        if let Some(order) = &answer.order {
            let switch = SocketAddr::new(self.rack.ip(), answer.switch_port);
            events.ordered(order, switch);
        }
    }

    /// Reports that the server leaves, until the rack has confirmed it.
    fn leave(&mut self, events: &mut impl AgentEvents) {
        if !self.joined {
            return;
        }
        let end = Instant::now() + LEAVE;
        let first = self.session.sent() + 1;
        while Instant::now() < end && self.session.answered() < first {
            let status = ServerStatus {
                draining: true,
                ..events.status()
            };
            self.report(&status);
            let until = (Instant::now() + BEAT).min(end);
            self.listen_until(until, events);
        }
        std::thread::sleep(SETTLE);
    }
}
