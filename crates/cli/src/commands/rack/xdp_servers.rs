//! Which servers of the switch in the kernel answer: the program counts, the policy decides, and a socket asks those that are silent.

use headway_net::header::{Flag, Header};
use headway_policy::MAX_WORKERS;
use headway_policy::rack::{Liveness, LivenessChange, ServerId};
use headway_rack::PacketCounts;
use headway_xdp::{Registers, ServerRegisters};
use std::net::{SocketAddr, UdpSocket};

/// UNKNOWN: a server need not tell it from an empty request of a client.
const QUESTION_TYPE: u8 = 255;
/// The index by which the program knows the answer, and leaves it to this socket.
const QUESTION_INDEX: u32 = 0;

/// Watches servers by what the program counted.
pub(super) struct ServerWatch {
    liveness: Liveness,
    /// The switch's own port.
    socket: UdpSocket,
    servers: Vec<SocketAddr>,
    /// Not where servers answer clients themselves: then silence after a request says nothing.
    sees_responses: bool,
    /// The program's counts at the last look.
    seen: Vec<ServerRegisters>,
    /// Only what servers are about: those that left, returned, were asked.
    counts: PacketCounts,
}

impl ServerWatch {
    /// `socket` does not block.
    pub(super) fn new(liveness: Liveness, socket: UdpSocket, servers: Vec<SocketAddr>) -> Self {
        Self {
            liveness,
            socket,
            seen: vec![ServerRegisters::default(); servers.len()],
            servers,
            sees_responses: true,
            counts: PacketCounts::default(),
        }
    }

    /// The same, where responses pass the switch or where they do not.
    pub(super) fn seeing_responses(mut self, sees: bool) -> Self {
        self.sees_responses = sees;
        self
    }

    /// Hears what servers did since the last look, and does what is due.
    pub(super) fn look(&mut self, now_ns: u64, registers: &Registers) {
        self.hear_answers();
        for number in 0..self.servers.len() {
            let server = ServerId(number as u16);
            let (before, now) = (self.seen[number], registers.servers[number]);
            self.seen[number] = now;
            if now.answered > before.answered {
                self.liveness.heard(server);
            }
            // Of what was sent before an answer in the same round nothing is known.
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

    /// Whatever a server sends here, it lives.
    fn hear_answers(&mut self) {
        let mut answer = [0; 64];
        loop {
            match self.socket.recv_from(&mut answer) {
                Ok((_, from)) => {
                    if let Some(number) = self.servers.iter().position(|&server| server == from) {
                        self.liveness.heard(ServerId(number as u16));
                    }
                }
                // A server's machine says that nobody listens there.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    fn ask(&mut self, number: usize) {
        let question = Header {
            class: QUESTION_TYPE,
            flag: Flag::REQUEST,
            index: QUESTION_INDEX,
            time_ns: 0,
        };
        // Not sent, or not answered: either way the next one follows.
        let _ = self
            .socket
            .send_to(&question.encode(), self.servers[number]);
        self.counts.asked += 1;
    }

    /// A server's agent reported: the server lives, and has `cores`; with 0 it takes no more requests. Another report is expected within
    /// the time of silence.
    pub(super) fn agent_said(&mut self, now_ns: u64, server: ServerId, cores: usize) {
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

    /// The cores that each server counts as having, 0 while it is silent.
    pub(super) fn cores(&self) -> Vec<usize> {
        let servers = 0..self.servers.len() as u16;
        servers
            .map(|number| self.liveness.cores(ServerId(number)))
            .collect()
    }

    /// Adds how many servers left, returned and were asked.
    pub(super) fn add_to(&self, counts: &mut PacketCounts) {
        counts.left += self.counts.left;
        counts.returned += self.counts.returned;
        counts.asked += self.counts.asked;
    }
}
