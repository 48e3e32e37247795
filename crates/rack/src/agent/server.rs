//! The server's end on a UDP port: what an agent's thread runs.

use super::hub::random;
use super::key::AgentKey;
use super::message::{AGENT_PACKET_BYTES_MAX, OrderedDuty};
use super::session::{AgentSession, ServerStatus};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// From one report to the next: a fifth of the silence after which a server leaves the turns.
const BEAT: Duration = Duration::from_millis(10);
/// How long an agent waits before it says that nobody answers.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an agent that leaves waits for the rack to say so.
const LEAVE: Duration = Duration::from_millis(200);
/// The switch looks every millisecond who left. What it sent before that arrives meanwhile.
const SETTLE: Duration = Duration::from_millis(20);

/// Why an agent did not begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It got no socket that reaches the rack.
    #[error("cannot reach the rack at {rack}: {source}")]
    Socket {
        /// Where the rack listens for agents.
        rack: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// What an agent asks its server, and tells it.
pub trait AgentEvents {
    /// What the server says of itself.
    fn status(&mut self) -> ServerStatus;

    /// What the server is to do. Requests come from `switch`.
    fn ordered(&mut self, order: &OrderedDuty, switch: SocketAddr);

    /// The rack accepted this agent, after it began or came back.
    fn joined(&mut self);

    /// The rack has accepted no report for a second: it does not run, or has another key. Said once until the rack accepts the agent.
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

/// A socket that reaches the rack from the server's own address, by which the rack knows the server; from one of the system's choice where it
/// serves at any.
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
    /// When a report was last accepted, or the agent began; none once it was said that nobody answers.
    accepted_at: Option<Instant>,
}

impl RunningAgent<'_> {
    /// A report that is lost is followed by the next.
    fn report(&mut self, status: &ServerStatus) {
        let packet = self.session.report(status);
        let _ = self.socket.send(&packet);
    }

    /// Takes answers until then.
    fn listen_until(&mut self, until: Instant, events: &mut impl AgentEvents) {
        let mut buffer = [0; AGENT_PACKET_BYTES_MAX];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // Zero would wait for ever.
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.take(&buffer[..length], events),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Nobody listens there yet, or any more.
                Err(_) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return;
                }
            }
        }
    }

    fn take(&mut self, packet: &[u8], events: &mut impl AgentEvents) {
        // Anybody may send packets of another key.
        let Ok(Some(answer)) = self.session.answer(packet) else {
            return;
        };
        if !self.session.is_joined() {
            self.joined = false;
            // Without waiting for the next beat.
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

    /// Says that the server leaves, until the rack has heard it.
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
