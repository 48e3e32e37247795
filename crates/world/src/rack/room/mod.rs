//! What happens in the rack, event by event.

mod agents;
mod checks;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use headway_machine::Clock;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_policy::rack::{
    Bouncing, ControlPlane, Liveness, LivenessRules, RackSystem, ServerId, Switch,
};
use headway_rack::agent::{AgentKey, HubRack, RackAgent, RackAgents};
use headway_rack::{
    ControlCycle, ControlStep, PortSwitch, RackControl, ServerAddresses, SwitchLimits, SwitchTables,
};

use crate::rack::book::{RequestBook, identity};
use crate::rack::port::{PortHandle, WorldPort};
use crate::rack::scenario::{Absence, DELAY_MAX_NS, ROOM, RackScenario, SILENT_NS};
use crate::scheduler::{draw, now_ns, read_clock_ns, spend};

/// The switch's interval between two looks, ns.
const TICK_NS: u64 = 1_000_000;

enum RackEvent {
    ClientSends(usize),
    ToSwitch(SocketAddr, Vec<u8>),
    SwitchStep,
    Tick,
    ToServer(usize, Vec<u8>),
    ServerAnswers(usize, u64, Vec<u8>),
    ControlStep,
    Scored(Vec<f64>),
    AgentStep(usize, u64),
    ToAgent(usize, Vec<u8>),
    ToHub(usize, Vec<u8>),
    Goes(usize, Absence, u64),
    Returns(usize),
    Jump(u64),
}

struct ModelServer {
    at: SocketAddr,
    /// When each worker is free, ns.
    free_ns: Vec<u64>,
    absence: Option<Absence>,
    /// Counts crashes: what was begun before is gone.
    life: u64,
    stash: Vec<Vec<u8>>,
    agent: Option<RackAgent>,
    /// The switch has not heard of the server since it sent it a request at this time, ns.
    awaited_ns: Option<u64>,
    /// The switch took it out of service, at the latest at this time, ns.
    dead_ns: Option<u64>,
    /// Its agent's departure was confirmed, and no agent has come since.
    has_left: bool,
}

impl ModelServer {
    fn new(at: SocketAddr, cores: usize) -> Self {
        Self {
            at,
            free_ns: vec![0; cores],
            absence: None,
            life: 0,
            stash: Vec::new(),
            agent: None,
            awaited_ns: None,
            dead_ns: None,
            has_left: false,
        }
    }
}

pub(super) struct RackRoom<'a, S> {
    scenario: &'a RackScenario,
    events: BTreeMap<(u64, u64), RackEvent>,
    numbered: u64,
    start_ns: u64,
    queues: PortHandle,
    switch: PortSwitch<S, WorldPort>,
    has_control: bool,
    control: Option<ControlCycle>,
    generation: u64,
    tables: Arc<SwitchTables>,
    hub: RackAgents,
    servers: Vec<ModelServer>,
    book: RequestBook,
    /// Packets that the switch received, and those from servers about probes.
    received: u64,
    jumped_ns: u64,
    /// When one server alone was in service last: the last never leaves, ns.
    alone_ns: u64,
    faults: Vec<String>,
    hash: u64,
}

fn server_at(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + number as u8], 7000))
}

fn client_at(number: u64) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 9000 + number as u16))
}

fn draw_word() -> u64 {
    draw(u64::MAX)
}

fn key() -> AgentKey {
    AgentKey::new(b"the key of a rack in the world").expect("it is long enough")
}

/// A control plane that chose its first groups at random.
fn first_groups(mut control: ControlPlane, tables: &Arc<SwitchTables>) -> RackControl {
    let candidates = control.candidates();
    let scores: Vec<f64> = candidates.iter().map(|_| draw(100) as f64).collect();
    control.choose(&scores);
    RackControl::new(control, Arc::clone(tables))
}

impl<'a, S: Switch> RackRoom<'a, S> {
    pub(super) fn new(scenario: &'a RackScenario, mut system: RackSystem<S>) -> Self {
        let clock = Clock::given(read_clock_ns);
        let queues = PortHandle::default();
        let own: SocketAddr = "10.0.0.99:7777".parse().expect("an address");
        let at: Vec<_> = (0..scenario.cores.len()).map(server_at).collect();
        let addresses = ServerAddresses::new(&at).expect("servers");
        let tables = Arc::new(SwitchTables::new(2).with_agents(at.len()));
        let limits = SwitchLimits {
            held: ROOM,
            nat_bits: 8,
            answer_ns: scenario.answer_ns,
            index_seed: draw(u64::MAX),
            ..SwitchLimits::new(2)
        };
        let rules = LivenessRules {
            silent_ns: SILENT_NS,
            ask_ns: 2 * SILENT_NS,
        };
        let control = system.control.take().map(|control| {
            let control = first_groups(control, &tables).adapting(system.adapting);
            ControlCycle::new(control, clock)
        });
        let port = WorldPort::new(own, &queues);
        let switch = PortSwitch::on(port, system.switch, addresses.clone(), limits, clock)
            .watching(Liveness::new(&scenario.cores, rules))
            .with_tables(Arc::clone(&tables));
        let rack = HubRack {
            servers: addresses,
            switch_port: own.port(),
            bouncing: Bouncing::Off,
            tables: Arc::clone(&tables),
            roster: None,
            admits: None,
        };
        let hub = RackAgents::new(key(), rack, draw_word);
        let servers = scenario.cores.iter().zip(at);
        let mut room = Self {
            servers: servers
                .map(|(&cores, at)| ModelServer::new(at, cores))
                .collect(),
            scenario,
            events: BTreeMap::new(),
            numbered: 0,
            start_ns: now_ns(),
            queues,
            switch,
            has_control: control.is_some(),
            control,
            generation: 0,
            tables,
            hub,
            book: RequestBook::default(),
            received: 0,
            jumped_ns: 0,
            alone_ns: 0,
            faults: Vec::new(),
            hash: 0xcbf2_9ce4_8422_2325,
        };
        room.begin();
        room
    }

    fn begin(&mut self) {
        let start_ns = self.start_ns;
        for (number, &(at_ns, _)) in self.scenario.requests.iter().enumerate() {
            self.at(start_ns + at_ns, RackEvent::ClientSends(number));
        }
        for &(at_ns, for_ns, server, how) in &self.scenario.absences {
            self.at(start_ns + at_ns, RackEvent::Goes(server, how, for_ns));
        }
        for &(at_ns, by_ns) in &self.scenario.jumps {
            self.at(start_ns + at_ns, RackEvent::Jump(by_ns));
        }
        self.at(start_ns, RackEvent::Tick);
        self.at(start_ns, RackEvent::ControlStep);
        if self.scenario.has_agents {
            for server in 0..self.servers.len() {
                self.begin_agent(server);
            }
        }
    }

    fn at(&mut self, at_ns: u64, event: RackEvent) {
        self.numbered += 1;
        self.events.insert((at_ns, self.numbered), event);
    }

    /// What the network makes of a packet.
    fn carry(&mut self, event: impl Fn() -> RackEvent) {
        let is_bad = self.scenario.bad_network;
        if is_bad && draw(25) == 0 {
            return;
        }
        let copies = if is_bad && draw(25) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let mut at_ns = now_ns() + 3_000 + draw(20_000);
            if is_bad && draw(15) == 0 {
                at_ns += draw(DELAY_MAX_NS);
            }
            self.at(at_ns, event());
        }
    }

    /// Lives until nothing is left but looks, and then for as long as the switch may await answers.
    pub(super) fn play(&mut self) {
        let last_ns = self.scenario.requests.last().map_or(0, |last| last.0);
        let absent_ns = self.scenario.absences.iter().map(|one| one.0 + one.1).max();
        let jumps_ns: u64 = self.scenario.jumps.iter().map(|jump| jump.1).sum();
        let end_ns = self.start_ns
            + jumps_ns
            + last_ns.max(absent_ns.unwrap_or(0))
            + 2 * self.scenario.answer_ns
            + 600 * TICK_NS;
        while let Some(entry) = self.events.first_entry() {
            let at_ns = entry.key().0;
            if at_ns > end_ns {
                break;
            }
            let event = entry.remove();
            let late_ns = at_ns.saturating_sub(now_ns());
            if late_ns > 0 {
                spend(late_ns);
            }
            self.happens(event);
        }
    }

    fn happens(&mut self, event: RackEvent) {
        match event {
            RackEvent::ClientSends(number) => self.client_sends(number),
            RackEvent::ToSwitch(from, bytes) => {
                self.received += 1;
                self.note_arrival(from, &bytes);
                self.queues.lock().coming.push_back((from, bytes));
                self.at(now_ns() + draw(3_000), RackEvent::SwitchStep);
            }
            RackEvent::SwitchStep => self.switch_step(),
            RackEvent::Tick => {
                self.switch_step();
                self.at(now_ns() + TICK_NS, RackEvent::Tick);
            }
            RackEvent::ToServer(server, bytes) => self.server_takes(server, bytes),
            RackEvent::ServerAnswers(server, life, bytes) => {
                let model = &mut self.servers[server];
                match model.absence {
                    _ if model.life != life => {}
                    Some(Absence::Crash) => {}
                    Some(Absence::Hang) => model.stash.push(bytes),
                    _ => {
                        let from = model.at;
                        self.carry(|| RackEvent::ToSwitch(from, bytes.clone()));
                    }
                }
            }
            RackEvent::ControlStep => self.control_step(None),
            RackEvent::Scored(scores) => self.control_step(Some(&scores)),
            RackEvent::AgentStep(server, life) => {
                if self.servers[server].life == life {
                    self.agent_step(server, None);
                }
            }
            RackEvent::ToAgent(server, bytes) => self.agent_step(server, Some(&bytes)),
            RackEvent::ToHub(server, bytes) => self.hub_step(server, &bytes),
            RackEvent::Goes(server, how, for_ns) => self.goes(server, how, for_ns),
            RackEvent::Returns(server) => self.returns(server),
            RackEvent::Jump(by_ns) => {
                spend(by_ns);
                self.jumped_ns = now_ns();
            }
        }
    }

    fn client_sends(&mut self, number: usize) {
        let client = client_at(number as u64 % self.scenario.clients);
        let header = Header {
            class: self.scenario.requests[number].1,
            flag: Flag::REQUEST,
            index: number as u32,
            time_ns: 0,
        };
        let body = identity(client, header.index);
        let mut packet = [&header.encode()[..], &body].concat();
        if self.scenario.liars && draw(20) == 0 {
            match draw(3) {
                0 => packet.truncate(draw(HEADER_BYTES as u64) as usize),
                // A response in a server's place, to a request that another client may have sent.
                1 => packet = header.response(Status::Ok, 1).encode().to_vec(),
                _ => {
                    let header = Header {
                        flag: Flag::response(Status::Ok),
                        index: draw(1 << 12) as u32,
                        ..header
                    };
                    packet = header.encode().to_vec();
                }
            }
        }
        self.carry(|| RackEvent::ToSwitch(client, packet.clone()));
    }

    fn note_arrival(&mut self, from: SocketAddr, bytes: &[u8]) {
        if let Some(server) = self.servers.iter_mut().find(|server| server.at == from) {
            server.awaited_ns = None;
            return;
        }
        if let Ok((header, _)) = Header::parse(bytes)
            && !header.flag.is_response()
        {
            self.book.delivered(from, header.index);
        }
    }

    fn switch_step(&mut self) {
        let queues = self.queues.lock();
        let heard: Vec<SocketAddr> = queues.coming.iter().map(|packet| packet.0).collect();
        drop(queues);
        self.switch.step();
        let going = std::mem::take(&mut self.queues.lock().going);
        for (to, bytes) in going {
            self.mix(&bytes);
            let (header, body) = Header::parse(&bytes).expect("the switch wrote it");
            match self.servers.iter().position(|server| server.at == to) {
                Some(server) => {
                    let is_probe = header.class == 255 && body.is_empty();
                    self.check_departed(server);
                    if !is_probe {
                        self.check_living(server);
                        // The switch may have heard of the server in this step after it sent the request.
                        if !heard.contains(&to) {
                            let now_ns = now_ns();
                            self.servers[server].awaited_ns.get_or_insert(now_ns);
                        }
                    }
                    self.carry(|| RackEvent::ToServer(server, bytes.clone()));
                }
                None => {
                    let fault = self.book.responded(to, header, body);
                    self.faults.extend(fault);
                }
            }
        }
        self.check_servers();
    }

    fn server_takes(&mut self, server: usize, bytes: Vec<u8>) {
        let model = &mut self.servers[server];
        match model.absence {
            Some(Absence::Crash) => return,
            Some(Absence::Hang) => {
                model.stash.push(bytes);
                return;
            }
            _ => {}
        }
        let (header, body) = Header::parse(&bytes).expect("the switch wrote it");
        if self.scenario.handed_back > 0
            && draw(self.scenario.handed_back) == 0
            && !header.flag.is_bounced()
            && header.class != 255
        {
            let mut back = bytes.clone();
            back[1] = header.flag.with_bounced(true).bits();
            let from = model.at;
            return self.carry(|| RackEvent::ToSwitch(from, back.clone()));
        }
        let service_ns = if header.class == 0 { 10_000 } else { 100_000 };
        let service_ns = 1 + draw(2 * service_ns);
        let worker = (0..model.free_ns.len()).min_by_key(|&worker| model.free_ns[worker]);
        let free_ns = &mut model.free_ns[worker.expect("it has a core")];
        *free_ns = (*free_ns).max(now_ns()) + service_ns;
        let status = if draw(40) == 0 {
            Status::Shed
        } else {
            Status::Ok
        };
        let mut response = header.response(status, service_ns);
        response.flag = response.flag.with_queue(header.flag.has_queue());
        let mut answer = response.encode().to_vec();
        if status == Status::Ok {
            answer.extend(body);
        }
        if header.flag.has_queue() {
            answer.extend((draw(9) as u16).to_be_bytes());
        }
        let (at_ns, life) = (*free_ns, model.life);
        self.at(at_ns, RackEvent::ServerAnswers(server, life, answer));
    }

    fn control_step(&mut self, scores: Option<&[f64]>) {
        let Some(control) = &mut self.control else {
            return;
        };
        let is_timed = scores.is_none();
        match control.step(scores) {
            ControlStep::Waits(ns) => {
                if is_timed {
                    self.at(now_ns() + ns, RackEvent::ControlStep);
                }
            }
            ControlStep::Looked(task) => {
                self.hub.follow(control.control());
                if let Some(task) = task {
                    let scores = task.control.candidates().iter();
                    let scores: Vec<_> = scores.map(|_| draw(100) as f64).collect();
                    self.at(now_ns() + draw(30_000_000), RackEvent::Scored(scores));
                }
                if is_timed {
                    self.at(now_ns(), RackEvent::ControlStep);
                }
            }
        }
        self.check_plan();
    }

    fn goes(&mut self, server: usize, how: Absence, for_ns: u64) {
        let model = &mut self.servers[server];
        if model.absence.is_some() {
            return;
        }
        model.absence = Some(how);
        match how {
            Absence::Crash => {
                model.life += 1;
                model.agent = None;
            }
            Absence::Hang => {}
            Absence::Leave => {
                if let Some(agent) = &mut model.agent {
                    agent.leave();
                    model.life += 1;
                    let life = model.life;
                    // What it serves is answered: only the agent's life is a new one.
                    self.renew(server, life);
                    self.at(now_ns(), RackEvent::AgentStep(server, life));
                }
            }
        }
        self.at(now_ns() + for_ns, RackEvent::Returns(server));
    }

    /// What the server has begun counts as of this life.
    fn renew(&mut self, server: usize, life: u64) {
        for event in self.events.values_mut() {
            if let RackEvent::ServerAnswers(of, began, _) = event
                && *of == server
            {
                *began = life;
            }
        }
    }

    fn returns(&mut self, server: usize) {
        let now_ns = now_ns();
        let model = &mut self.servers[server];
        let how = model.absence.take();
        for free_ns in &mut model.free_ns {
            *free_ns = (*free_ns).max(now_ns);
        }
        let stash = std::mem::take(&mut model.stash);
        for bytes in stash {
            let is_answer =
                Header::parse(&bytes).is_ok_and(|(header, _)| header.flag.is_response());
            if is_answer {
                let from = self.servers[server].at;
                self.carry(|| RackEvent::ToSwitch(from, bytes.clone()));
            } else {
                self.server_takes(server, bytes);
            }
        }
        if !self.scenario.has_agents {
            return;
        }
        if how == Some(Absence::Hang) {
            let life = self.servers[server].life;
            self.at(now_ns, RackEvent::AgentStep(server, life));
        } else {
            self.servers[server].life += 1;
            let life = self.servers[server].life;
            self.renew(server, life);
            self.begin_agent(server);
        }
    }

    fn mix(&mut self, bytes: &[u8]) {
        let time = now_ns().to_le_bytes();
        for byte in time.iter().chain(bytes) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// What holds at the end, when nothing is under way any more.
    pub(super) fn finish(mut self) -> (Vec<String>, u64) {
        let switch = self.switch.switch();
        let counts = *switch.counts();
        let waiting = self.queues.lock().coming.len() as u64;
        let in_a_count =
            counts.requests + counts.answered + counts.filtered + counts.bounced + counts.dropped();
        let received = self.received - waiting;
        let mut faults = Vec::new();
        // A copy that a server refuses is in a count of its own, unless it was handed back; answers to probes are in none.
        if !(in_a_count..=in_a_count + counts.copies_refused + counts.asked).contains(&received) {
            faults.push(format!("{received} packets, and these counts: {counts:?}"));
        }
        if counts.requests != self.book.deliveries {
            faults.push(format!(
                "{} requests came, and these counts: {counts:?}",
                self.book.deliveries
            ));
        }
        if counts.answered + counts.shed != self.book.responses {
            faults.push(format!(
                "{} responses left, and these counts: {counts:?}",
                self.book.responses
            ));
        }
        if counts.requests > self.book.responses + counts.expired {
            faults.push(format!("requests are lost without a count: {counts:?}"));
        }
        if switch.under_way() > 0 && counts.asked == 0 {
            faults.push(format!("{} requests are under way", switch.under_way()));
        }
        for number in 0..self.servers.len() {
            let unanswered = switch.unanswered(ServerId(number as u16));
            if unanswered > 0 {
                faults.push(format!("server {number} owes {unanswered} requests"));
            }
        }
        self.faults.append(&mut faults);
        (self.faults, self.hash)
    }
}
