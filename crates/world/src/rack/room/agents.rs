//! The agents of the rack's servers, and the hub that they report to.

use std::net::SocketAddr;

use headway_machine::Clock;
use headway_policy::rack::{ServerId, Switch};
use headway_rack::agent::{
    AgentEvents, AgentSession, AgentStep, OrderedDuty, RackAgent, ServerStatus,
};

use super::{RackEvent, RackRoom, draw_word, key};
use crate::rack::scenario::Absence;
use crate::scheduler::{draw, now_ns, read_clock_ns};

struct ModelEvents(ServerStatus);

impl AgentEvents for ModelEvents {
    fn status(&mut self) -> ServerStatus {
        self.0
    }

    fn ordered(&mut self, order: &OrderedDuty, _switch: SocketAddr) {
        self.0.in_force = order.number;
    }

    fn joined(&mut self) {}

    fn unanswered(&mut self) {}
}

impl<S: Switch> RackRoom<'_, S> {
    pub(super) fn begin_agent(&mut self, server: usize) {
        let rack = "10.0.0.99:7100".parse().expect("an address");
        let clock = Clock::given(read_clock_ns);
        let ip = self.servers[server].at.ip();
        let session = AgentSession::new(key(), draw_word(), ip);
        self.servers[server].agent = Some(RackAgent::new(session, rack, clock));
        let life = self.servers[server].life;
        self.at(
            now_ns() + draw(10_000_000),
            RackEvent::AgentStep(server, life),
        );
    }

    pub(super) fn agent_step(&mut self, server: usize, packet: Option<&[u8]>) {
        let model = &mut self.servers[server];
        if matches!(model.absence, Some(Absence::Crash | Absence::Hang)) {
            return;
        }
        let Some(agent) = &mut model.agent else {
            return;
        };
        let mut events = ModelEvents(ServerStatus {
            port: model.at.port(),
            workers: model.free_ns.len() as u16,
            ..ServerStatus::default()
        });
        let mut reports = Vec::new();
        let step = agent.step(packet, &mut events, |report| reports.push(report.to_vec()));
        let life = model.life;
        match step {
            AgentStep::Left => model.agent = None,
            // The step of the next report is there already.
            AgentStep::Listens { .. } if packet.is_some() => {}
            AgentStep::Listens { until_ns } => {
                self.at(until_ns, RackEvent::AgentStep(server, life));
            }
        }
        for report in reports {
            self.carry(|| RackEvent::ToHub(server, report.clone()));
        }
    }

    pub(super) fn hub_step(&mut self, server: usize, report: &[u8]) {
        let from = SocketAddr::new(self.servers[server].at.ip(), 5555);
        let accepted = self.hub.counts().reports;
        let answer = self.hub.step(from, report);
        if self.hub.counts().reports > accepted {
            let state = self.hub.agent(ServerId(server as u16));
            let leaves = state.is_some_and(|state| state.report.draining);
            // The agent's answer to a report that the server leaves is its confirmation.
            self.servers[server].has_left = leaves && answer.is_some();
        }
        if let Some(answer) = answer {
            self.carry(|| RackEvent::ToAgent(server, answer.clone()));
        }
        self.servers[server].awaited_ns = None;
    }
}
