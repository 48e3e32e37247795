//! Watches which servers of the switch in the kernel answer: the program counts, the policy decides, and a socket questions silent servers.

use headway_net::header::{Flag, Header};
use headway_policy::MAX_WORKERS;
use headway_policy::rack::{Liveness, LivenessChange, ServerId};
use headway_rack::PacketCounts;
use headway_xdp::{Registers, ServerRegisters};
use std::net::{SocketAddr, UdpSocket};

/// UNKNOWN: a server may treat the question like a client's empty request.
const QUESTION_TYPE: u8 = 255;

/// Watches servers by the program's counts.
pub(super) struct ServerWatch {
    liveness: Liveness,
    /// The switch's own port.
    socket: UdpSocket,
    /// By place.
    servers: Vec<Option<SocketAddr>>,
    /// The index by which the program recognises the answer and passes it to this socket.
    question_index: u32,
    /// False if servers answer clients directly: silence after a request then has no meaning.
    sees_responses: bool,
    /// Whether each place has a server that gets requests by order.
    serves: Vec<bool>,
    /// The program's counts in the last round.
    seen: Vec<ServerRegisters>,
    /// Only the counts about servers: left, returned, asked.
    counts: PacketCounts,
}

impl ServerWatch {
    /// `socket` must be non-blocking.
    pub(super) fn new(
        liveness: Liveness,
        socket: UdpSocket,
        servers: Vec<Option<SocketAddr>>,
        question_index: u32,
    ) -> Self {
        Self {
            liveness,
            socket,
            seen: vec![ServerRegisters::default(); servers.len()],
            serves: servers.iter().map(Option::is_some).collect(),
            servers,
            question_index,
            sees_responses: true,
            counts: PacketCounts::default(),
        }
    }

    /// Sets whether responses pass the switch.
    pub(super) fn seeing_responses(mut self, sees: bool) -> Self {
        self.sees_responses = sees;
        self
    }

    /// Updates the servers' liveness from the new counts, and sends the questions that are due.
    pub(super) fn look(&mut self, now_ns: u64, registers: &Registers) {
        self.hear_answers();
        for number in 0..self.servers.len() {
            let server = ServerId(number as u16);
            let (before, now) = (self.seen[number], registers.servers[number]);
            self.seen[number] = now;
            if now.answered > before.answered {
                self.liveness.heard(server);
            }
            // The counts do not show whether a request was sent before or after an answer of the same round.
            if self.sees_responses && now.sent > before.sent && now.unanswered() > 0 {
                self.liveness.sent(server, now_ns);
            }
            let cores = self.liveness.cores(server);
            match self.liveness.look(server, now_ns) {
                Some(LivenessChange::Cores(counted)) => {
                    self.count(cores, counted);
                }
                Some(LivenessChange::Ask) => self.ask(number),
                None => {}
            }
        }
    }

    /// A server's answer to a question shows that it is alive.
    fn hear_answers(&mut self) {
        let mut answer = [0; 64];
        loop {
            match self.socket.recv_from(&mut answer) {
                Ok((length, from)) => {
                    let answer = Header::parse(&answer[..length]);
                    let answers = answer.is_ok_and(|(header, _)| {
                        header.flag.is_response() && header.index == self.question_index
                    });
                    if !answers {
                        continue;
                    }
                    let is_from = |server: &Option<SocketAddr>| *server == Some(from);
                    if let Some(number) = self.servers.iter().position(is_from) {
                        self.liveness.heard(ServerId(number as u16));
                    }
                }
                // The server's machine reports a closed port.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    fn ask(&mut self, number: usize) {
        let Some(server) = self.servers[number] else {
            return;
        };
        let question = Header {
            class: QUESTION_TYPE,
            flag: Flag::REQUEST,
            index: self.question_index,
            time_ns: 0,
        };
        // A failed send counts like a missing answer: the next question follows.
        let _ = self.socket.send_to(&question.encode(), server);
        self.counts.asked += 1;
    }

    /// A server has this place, and so many cores. What the place's last one was sent says nothing of it.
    pub(super) fn join(&mut self, place: ServerId, server: SocketAddr, cores: usize) {
        self.servers[place.index()] = Some(server);
        self.serves[place.index()] = true;
        self.liveness.join(place, cores);
    }

    /// The server gets no more requests, by order.
    pub(super) fn drain(&mut self, place: ServerId) {
        self.serves[place.index()] = false;
        self.liveness.leave(place);
    }

    /// The place is free.
    pub(super) fn vacate(&mut self, place: ServerId) {
        self.drain(place);
        self.servers[place.index()] = None;
    }

    /// Watches from these counts on.
    pub(super) fn begin_at(&mut self, registers: &Registers) {
        let counts = &registers.servers[..self.seen.len()];
        self.seen.copy_from_slice(counts);
    }

    /// An earlier control plane had missed the server.
    pub(super) fn was_silent(&mut self, place: ServerId, now_ns: u64) {
        self.liveness.was_silent(place, now_ns);
    }

    /// Handles a report of a server's agent: the server is alive and has `cores`; with 0 it takes no more requests. The next report must
    /// come within the time of silence.
    pub(super) fn agent_said(&mut self, now_ns: u64, server: ServerId, cores: usize) {
        if !self.serves[server.index()] {
            return;
        }
        let before = self.liveness.cores(server);
        self.liveness.heard(server);
        if cores > 0 {
            self.liveness.sent(server, now_ns);
        }
        let change = self.liveness.capacity(server, cores.min(MAX_WORKERS));
        if let Some(LivenessChange::Cores(counted)) = change {
            self.count(before, counted);
        }
    }

    fn count(&mut self, before: usize, counted: usize) {
        self.counts.left += u64::from(counted == 0);
        self.counts.returned += u64::from(before == 0);
    }

    /// The cores that each server counts for, 0 while it is silent.
    pub(super) fn cores(&self) -> Vec<usize> {
        let servers = 0..self.servers.len() as u16;
        servers
            .map(|number| self.liveness.cores(ServerId(number)))
            .collect()
    }

    /// Adds the numbers of servers that left, returned and were asked.
    pub(super) fn add_to(&self, counts: &mut PacketCounts) {
        counts.left += self.counts.left;
        counts.returned += self.counts.returned;
        counts.asked += self.counts.asked;
    }
}
