//! The server's end with its clock, and the loop of an agent's thread around it, on a UDP port.

use super::hub::random;
use super::key::AgentKey;
use super::message::{AGENT_PACKET_BYTES_MAX, OrderedDuty};
use super::session::{AgentSession, ServerStatus};
use headway_machine::Clock;
use headway_sync::world;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval between reports, ns: a fifth of the silence after which the switch takes a server out of service.
const BEAT_NS: u64 = 10_000_000;
/// The time without an accepted report after which an agent announces that the rack does not answer, ns.
const PATIENCE_NS: u64 = 1_000_000_000;
/// The time that a leaving agent waits for the rack's confirmation, ns. The rack confirms when its switch sends the server nothing more, which may
/// take a look of the control plane; the switch never leaves the last server, and does not confirm that.
const LEAVE_NS: u64 = 1_000_000_000;
/// Requests that the switch sent before it confirmed arrive during this time, ns.
const SETTLE_NS: u64 = 50_000_000;

/// Why an agent did not begin.
#[derive(thiserror::Error)]
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

headway_words::debug_is_display!(AgentError);

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
/// sends nothing more or after a second.
///
/// # Panics
/// When the system does not tell the socket's own address.
pub fn run_agent(
    socket: &UdpSocket,
    rack: SocketAddr,
    key: AgentKey,
    clock: Clock,
    stopped: &AtomicBool,
    events: &mut impl AgentEvents,
) {
    let own = socket.local_addr().expect("a bound socket has an address");
    let session = AgentSession::new(key, random(), own.ip());
    let mut agent = RackAgent::new(session, rack, clock);
    let mut buffer = [0; AGENT_PACKET_BYTES_MAX];
    let mut received = None;
    loop {
        if stopped.load(Ordering::Acquire) {
            agent.leave();
        }
        let packet = received.take().map(|length: usize| &buffer[..length]);
        // The next report makes up for a lost one.
        let send = |packet: &[u8]| drop(socket.send(packet));
        match agent.step(packet, events, send) {
            AgentStep::Listens { until_ns } => {
                let left_ns = until_ns.saturating_sub(clock.now_ns());
                received = listen(socket, Duration::from_nanos(left_ns), &mut buffer);
            }
            AgentStep::Left => return,
        }
    }
}

/// Waits for a packet for so long; returns its length.
fn listen(socket: &UdpSocket, most: Duration, buffer: &mut [u8]) -> Option<usize> {
    // A timeout of zero would block for ever.
    if most.is_zero() {
        return None;
    }
    let received = socket
        .set_read_timeout(Some(most))
        .and_then(|()| socket.recv(buffer));
    match received {
        Ok(length) => Some(length),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        // The rack's port is closed: it has not started, or it ended.
        Err(_) => {
            world::sleep(most);
            None
        }
    }
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

/// The server's end with its clock: the time and packets of the rack in, reports out.
pub struct RackAgent {
    session: AgentSession,
    rack: SocketAddr,
    clock: Clock,
    joined: bool,
    /// When the rack last accepted a report, or the agent began, ns. `None` once the agent has announced that the rack does not answer.
    accepted_ns: Option<u64>,
    /// When the next report is due, ns.
    next_ns: u64,
    leaving: AgentLeaving,
}

/// How far the agent's departure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AgentLeaving {
    /// It stays.
    No,
    /// It reports that the server leaves, from its report `first` on, until the rack confirms that or `end_ns` has come.
    Reports { first: u64, end_ns: u64 },
    /// The switch's last requests arrive until then.
    Settles { until_ns: u64 },
}

/// The result of a step of a [`RackAgent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentStep {
    /// The next step is due when a packet of the rack arrives, or at this time of the agent's clock.
    Listens {
        /// That time, ns.
        until_ns: u64,
    },
    /// The agent has left: the switch sends the server nothing more, or the rack did not confirm in time.
    Left,
}

impl RackAgent {
    /// The agent of a session that has not begun. Its first step reports.
    #[must_use]
    pub fn new(session: AgentSession, rack: SocketAddr, clock: Clock) -> Self {
        let now_ns = clock.now_ns();
        Self {
            session,
            rack,
            clock,
            joined: false,
            accepted_ns: Some(now_ns),
            next_ns: now_ns,
            leaving: AgentLeaving::No,
        }
    }

    /// Announces from the next step on that the server leaves. Later calls change nothing.
    pub fn leave(&mut self) {
        if self.leaving != AgentLeaving::No {
            return;
        }
        let now_ns = self.clock.now_ns();
        self.next_ns = now_ns;
        self.leaving = if self.joined {
            AgentLeaving::Reports {
                first: self.session.sent() + 1,
                end_ns: now_ns + LEAVE_NS,
            }
        } else {
            AgentLeaving::Settles { until_ns: now_ns }
        };
    }

    /// Takes a packet that arrived, then reports if a report is due. `send` sends a packet to the rack.
    pub fn step(
        &mut self,
        packet: Option<&[u8]>,
        events: &mut impl AgentEvents,
        mut send: impl FnMut(&[u8]),
    ) -> AgentStep {
        if let Some(packet) = packet {
            self.take(packet, events, &mut send);
        }
        let now_ns = self.clock.now_ns();
        if let AgentLeaving::Reports { first, end_ns } = self.leaving
            && (now_ns >= end_ns || self.is_confirmed(first))
        {
            self.leaving = AgentLeaving::Settles {
                until_ns: now_ns + SETTLE_NS,
            };
        }
        let until_ns = match self.leaving {
            AgentLeaving::Settles { until_ns } if now_ns >= until_ns => return AgentStep::Left,
            AgentLeaving::Settles { until_ns } => until_ns,
            AgentLeaving::Reports { end_ns, .. } => {
                self.report_if_due(now_ns, events, &mut send);
                self.next_ns.min(end_ns)
            }
            AgentLeaving::No => {
                self.report_if_due(now_ns, events, &mut send);
                self.next_ns
            }
        };
        AgentStep::Listens { until_ns }
    }

    /// Whether the rack accepted the report of this number, or a later one. An answer that names another session accepts none.
    fn is_confirmed(&self, first: u64) -> bool {
        self.session.is_joined() && self.session.answered() >= first
    }

    fn report_if_due(
        &mut self,
        now_ns: u64,
        events: &mut impl AgentEvents,
        send: &mut impl FnMut(&[u8]),
    ) {
        if now_ns < self.next_ns {
            return;
        }
        let waited_ns = self.accepted_ns.map(|at_ns| now_ns.saturating_sub(at_ns));
        if self.leaving == AgentLeaving::No && waited_ns.is_some_and(|ns| ns > PATIENCE_NS) {
            self.accepted_ns = None;
            self.joined = false;
            events.unanswered();
        }
        self.next_ns = now_ns + BEAT_NS;
        self.report(events, send);
    }

    /// Sends a report: of a server that is about to stop, from the moment at which the agent leaves.
    fn report(&mut self, events: &mut impl AgentEvents, send: &mut impl FnMut(&[u8])) {
        let mut status = events.status();
        status.draining |= self.leaving != AgentLeaving::No;
        send(&self.session.report(&status));
    }

    fn take(&mut self, packet: &[u8], events: &mut impl AgentEvents, send: &mut impl FnMut(&[u8])) {
        // Strangers may send packets of another key; they are ignored.
        let Ok(Some(answer)) = self.session.answer(packet) else {
            return;
        };
        if !self.session.is_joined() {
            self.joined = false;
            // Reports at once, since waiting for the next beat would delay the session.
            self.report(events, send);
            return;
        }
        self.accepted_ns = Some(self.clock.now_ns());
        if !self.joined {
            self.joined = true;
            events.joined();
        }
        if let Some(order) = &answer.order {
            let switch = SocketAddr::new(self.rack.ip(), answer.switch_port);
            events.ordered(order, switch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentRegistry;
    use crate::{ServerAddresses, agent::AgentNews};
    use std::cell::Cell;

    thread_local! {
        static NOW_NS: Cell<u64> = const { Cell::new(1) };
    }

    struct Busy;

    impl AgentEvents for Busy {
        fn status(&mut self) -> ServerStatus {
            ServerStatus {
                port: 7001,
                workers: 4,
                ..ServerStatus::default()
            }
        }

        fn ordered(&mut self, _order: &OrderedDuty, _switch: SocketAddr) {}

        fn joined(&mut self) {}

        fn unanswered(&mut self) {}
    }

    fn key() -> AgentKey {
        AgentKey::new(b"a key of this rack").unwrap()
    }

    fn hub() -> AgentRegistry {
        let servers = ServerAddresses::new(&["10.0.0.1:7001".parse().unwrap()]);
        AgentRegistry::new(key(), servers.unwrap(), 7100, || 1 + (NOW_NS.get() << 8))
    }

    /// A step of the agent, with each report answered at once. Returns the step, and the reports that the rack accepted.
    fn step(agent: &mut RackAgent, rack: &mut AgentRegistry) -> (AgentStep, Vec<AgentNews>) {
        let (mut news, mut answer) = (Vec::new(), None);
        loop {
            let mut reports = Vec::new();
            let packet: Option<Vec<u8>> = answer.take();
            let step = agent.step(packet.as_deref(), &mut Busy, |packet| {
                reports.push(packet.to_vec());
            });
            for report in &reports {
                let from = "10.0.0.1:5555".parse().unwrap();
                let (answered, accepted) = rack.handle(from, report, |_, _| None);
                news.extend(accepted);
                answer = answered;
            }
            if answer.is_none() {
                return (step, news);
            }
        }
    }

    /// Steps at the times that the agent asks for, until it left; the reports that the rack accepted.
    fn leave(agent: &mut RackAgent, rack: &mut AgentRegistry) -> Vec<AgentNews> {
        agent.leave();
        let mut news = Vec::new();
        loop {
            let (step, accepted) = step(agent, rack);
            news.extend(accepted);
            match step {
                AgentStep::Listens { until_ns } => NOW_NS.set(until_ns),
                AgentStep::Left => return news,
            }
        }
    }

    fn joined() -> (RackAgent, AgentRegistry) {
        let clock = Clock::given(|| NOW_NS.get());
        let rack = "10.0.0.9:7100".parse().unwrap();
        let session = AgentSession::new(key(), 77, [10, 0, 0, 1].into());
        let (mut agent, mut hub) = (RackAgent::new(session, rack, clock), hub());
        let (_, news) = step(&mut agent, &mut hub);
        assert!(news.iter().all(|news| !news.report.draining) && news.len() == 1);
        (agent, hub)
    }

    #[test]
    fn an_agent_leaves_once_the_rack_has_confirmed_it_and_settles() {
        let (mut agent, mut hub) = joined();
        let begin_ns = NOW_NS.get();
        let news = leave(&mut agent, &mut hub);
        assert!(news.iter().all(|news| news.report.draining) && !news.is_empty());
        assert_eq!(NOW_NS.get() - begin_ns, SETTLE_NS);
    }

    /// The rack's new registry answers with a session: that is no confirmation, and the report that begins the session says that the server leaves.
    #[test]
    fn a_rack_that_was_started_anew_hears_that_the_server_leaves() {
        let (mut agent, _) = joined();
        NOW_NS.set(NOW_NS.get() + 1);
        let news = leave(&mut agent, &mut hub());
        assert!(!news.is_empty(), "the rack heard nothing of it");
        assert!(news.iter().all(|news| news.report.draining), "{news:?}");
    }

    #[test]
    fn a_rack_that_does_not_answer_holds_nobody_for_longer_than_stated() {
        let (mut agent, _) = joined();
        let begin_ns = NOW_NS.get();
        agent.leave();
        while let AgentStep::Listens { until_ns } = agent.step(None, &mut Busy, |_| {}) {
            NOW_NS.set(until_ns);
        }
        assert_eq!(NOW_NS.get() - begin_ns, LEAVE_NS + SETTLE_NS);
    }
}
