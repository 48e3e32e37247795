//! The rack's end without I/O: reports in, answers out.

use super::key::AgentKey;
use super::message::{AgentReport, MessageError, OrderedDuty, RackAnswer, mapped};
use crate::ServerAddresses;
use headway_net::slot::Peer;
use headway_policy::rack::ServerId;
use std::net::SocketAddr;

/// Counts of agents' packets by fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgentCounts {
    /// Accepted reports.
    pub reports: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Reports outside a valid session; the answer named the next session.
    pub greeted: u64,
    /// Dropped: made with another key.
    pub wrong_key: u64,
    /// Dropped: not newer than the session's last report.
    pub replayed: u64,
    /// Dropped: packets of another protocol.
    pub malformed: u64,
    /// Dropped: reports of a server at another address than the one that they came from.
    pub misaddressed: u64,
    /// Dropped: packets about a server outside this rack.
    pub strangers: u64,
    /// Servers outside this rack whose agents announced them, where they may.
    pub announced: u64,
}

/// The state of a server's agent at the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentState {
    /// Its last report.
    pub report: AgentReport,
}

/// An accepted report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentNews {
    /// The server that it describes.
    pub server: ServerId,
    /// The report.
    pub report: AgentReport,
}

/// A server that is not in the rack, and whose agent has the key and speaks now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnnouncedServer {
    /// Its address.
    pub address: SocketAddr,
    /// Its workers.
    pub workers: usize,
}

struct ServerSession {
    /// The session that the next agent may begin; never 0.
    next: u64,
    last: Option<AgentState>,
}

/// The agents of a rack's servers.
pub struct AgentRegistry {
    key: AgentKey,
    servers: ServerAddresses,
    sessions: Vec<ServerSession>,
    switch_port: u16,
    draw: fn() -> u64,
    counts: AgentCounts,
    /// The session by which the next server that is not in the rack may be announced; none: none may.
    announcing: Option<u64>,
    announced: Option<AnnouncedServer>,
    /// Servers that left, and the numbers of their agents: while these live they announce themselves in vain.
    dismissed: Vec<(Peer, u64)>,
}

impl AgentRegistry {
    /// A registry for these servers. `draw` returns unpredictable random numbers.
    #[must_use]
    pub fn new(
        key: AgentKey,
        servers: ServerAddresses,
        switch_port: u16,
        draw: fn() -> u64,
    ) -> Self {
        let sessions = (0..servers.count()).map(|_| ServerSession {
            next: draw() | 1,
            last: None,
        });
        Self {
            key,
            sessions: sessions.collect(),
            servers,
            switch_port,
            draw,
            counts: AgentCounts::default(),
            announcing: None,
            announced: None,
            dismissed: Vec::new(),
        }
    }

    /// Lets agents that have the key announce servers that are not in the rack.
    #[must_use]
    pub fn admitting(mut self) -> Self {
        self.announcing = Some((self.draw)() | 1);
        self
    }

    /// The server that the last packet announced.
    pub fn take_announced(&mut self) -> Option<AnnouncedServer> {
        self.announced.take()
    }

    /// A server at this address has this place from now on, or nobody. The sessions of a server that was there before end.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn put(&mut self, place: ServerId, server: Option<SocketAddr>) {
        let peer = server.map_or(Peer::NOBODY, Peer::from);
        if self.servers.peer(place) == peer {
            return;
        }
        let (before, last) = (self.servers.peer(place), self.sessions[place.index()].last);
        self.dismissed
            .retain(|(dismissed, _)| ![before, peer].contains(dismissed));
        if let Some(state) = last {
            self.dismissed.push((before, state.report.agent));
        }
        self.servers.put(place, server);
        self.sessions[place.index()] = ServerSession {
            next: (self.draw)() | 1,
            last: None,
        };
    }

    /// Takes a packet and returns the answer, if any, and the report, if it is accepted. `order` maps a server and the order in
    /// force there to a newer order, if there is one.
    pub fn handle(
        &mut self,
        from: SocketAddr,
        packet: &[u8],
        order: impl FnOnce(ServerId, u64) -> Option<OrderedDuty>,
    ) -> (Option<Vec<u8>>, Option<AgentNews>) {
        let report = match AgentReport::open(&self.key, packet) {
            Ok(report) => report,
            Err(MessageError::WrongKey) => {
                self.counts.wrong_key += 1;
                return (None, None);
            }
            Err(MessageError::Malformed) => {
                self.counts.malformed += 1;
                return (None, None);
            }
        };
        if report.ip != mapped(from.ip()) {
            self.counts.misaddressed += 1;
            return (None, None);
        }
        let at = Peer::from(SocketAddr::new(from.ip(), report.port));
        let Some(server) = self.servers.find(at) else {
            return (self.stranger(at, &report), None);
        };
        let session = &mut self.sessions[server.index()];
        let last = session.last.map(|state| state.report);
        let current =
            last.filter(|last| (last.agent, last.session) == (report.agent, report.session));
        let begins = report.session == session.next;
        let mut answer = RackAnswer {
            agent: report.agent,
            session: report.session,
            answers: report.counter,
            switch_port: self.switch_port,
            order: None,
        };
        if let Some(last) = current
            && report.counter <= last.counter
        {
            self.counts.replayed += 1;
            return (None, None);
        }
        if current.is_none() && !begins {
            self.counts.greeted += 1;
            answer.session = session.next;
            return (Some(answer.seal(&self.key)), None);
        }
        if begins {
            self.counts.sessions += 1;
            session.next = (self.draw)() | 1;
        }
        self.counts.reports += 1;
        session.last = Some(AgentState { report });
        answer.order = order(server, report.in_force);
        let news = AgentNews { server, report };
        (Some(answer.seal(&self.key)), Some(news))
    }

    /// Handles a report about a server that is not in the rack. Only one that names the session of this moment announces it, so that nothing
    /// recorded does.
    fn stranger(&mut self, at: Peer, report: &AgentReport) -> Option<Vec<u8>> {
        let is_dismissed = self.dismissed.contains(&(at, report.agent));
        let serves = report.workers > 0 && !report.draining;
        let Some(session) = self.announcing.filter(|_| serves && !is_dismissed) else {
            self.counts.strangers += 1;
            return None;
        };
        if report.session == session {
            self.counts.announced += 1;
            self.announcing = Some((self.draw)() | 1);
            self.announced = Some(AnnouncedServer {
                address: at.socket_addr(),
                workers: usize::from(report.workers),
            });
            return None;
        }
        self.counts.greeted += 1;
        let answer = RackAnswer {
            agent: report.agent,
            session,
            answers: report.counter,
            switch_port: self.switch_port,
            order: None,
        };
        Some(answer.seal(&self.key))
    }

    /// Counts of packets so far.
    #[must_use]
    pub fn counts(&self) -> &AgentCounts {
        &self.counts
    }

    /// The state of a server's agent; `None` before its first report.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn state(&self, server: ServerId) -> Option<AgentState> {
        self.sessions[server.index()].last
    }
}
