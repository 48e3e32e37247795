//! The server's end without I/O: reports out, answers in.

use super::key::AgentKey;
use super::message::{AgentReport, MessageError, OrderedDuty, RackAnswer, mapped};
use std::net::IpAddr;

/// A server's status in a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerStatus {
    /// The port that the server listens on.
    pub port: u16,
    /// Workers in use.
    pub workers: u16,
    /// Whether the server is about to stop.
    pub draining: bool,
    /// The number of the order in force; 0 before the first.
    pub in_force: u64,
    /// Clones dropped so far.
    pub clones_dropped: u64,
    /// Requests handed back so far.
    pub handed_back: u64,
}

/// An agent's session with its rack.
pub struct AgentSession {
    key: AgentKey,
    agent: u64,
    ip: [u8; 16],
    /// The session's number; 0 before the first.
    session: u64,
    sent: u64,
    answered: u64,
    /// Whether the last answer was about a report of this session.
    joined: bool,
}

impl AgentSession {
    /// A session of the agent with this number, which it drew at random, of the server at this address.
    #[must_use]
    pub fn new(key: AgentKey, agent: u64, server: IpAddr) -> Self {
        Self {
            key,
            agent,
            ip: mapped(server),
            session: 0,
            sent: 0,
            answered: 0,
            joined: false,
        }
    }

    /// The next report, as a packet.
    pub fn report(&mut self, status: &ServerStatus) -> Vec<u8> {
        self.sent += 1;
        let report = AgentReport {
            agent: self.agent,
            session: self.session,
            counter: self.sent,
            ip: self.ip,
            port: status.port,
            workers: status.workers,
            draining: status.draining,
            in_force: status.in_force,
            clones_dropped: status.clones_dropped,
            handed_back: status.handed_back,
        };
        report.seal(&self.key)
    }

    /// Takes a packet from the rack and returns the answer, if it is a new answer to a report of this agent.
    ///
    /// # Errors
    /// [`MessageError`]
    pub fn answer(&mut self, packet: &[u8]) -> Result<Option<AcceptedAnswer>, MessageError> {
        let answer = RackAnswer::open(&self.key, packet)?;
        let is_new = (self.answered + 1..=self.sent).contains(&answer.answers);
        if answer.agent != self.agent || !is_new {
            return Ok(None);
        }
        self.answered = answer.answers;
        self.joined = self.session == answer.session;
        self.session = answer.session;
        Ok(Some(AcceptedAnswer {
            switch_port: answer.switch_port,
            order: answer.order,
        }))
    }

    /// Whether the rack accepted a report of this session.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.joined
    }

    /// Reports sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The last report that was answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered
    }
}

/// An answer that the agent accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedAnswer {
    /// The switch's port.
    pub switch_port: u16,
    /// The server's new duty, where it is not in force yet.
    pub order: Option<OrderedDuty>,
}
