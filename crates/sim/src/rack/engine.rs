//! The rack's event loop: arrivals at the switch, requests and replies on their way, servers, the control plane's clock.

use super::flights::{Flights, tag, untag};
use super::links::{Link, ToServer, Upward};
use super::measures::RackMeasures;
use super::rival::Rival;
use crate::arrivals::RequestStream;
use crate::engine::agenda::Agenda;
use crate::error::SimError;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use crate::server::{self, Left, NEVER, SimRequest, SimulatedServer};
use crate::span::check_end;
use crate::standings::Standings;
use headway_policy::rack::{
    Agent, Bouncing, ControlPlane, Duty, Forward, Mark, Packet, Part, RackSystem, Reply, ServerId,
    Switch, Turns,
};
use headway_policy::server::role::{GroupShares, Share};
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::Params;
use headway_policy::{ClassId, WorkerId};

/// Scores the control plane's candidates at a load, by trials on racks of their own.
pub(super) type Scoring = fn(&Experiment, &ControlPlane, f64, Turns) -> Result<Vec<f64>, SimError>;

/// Runs the experiment to its end. The servers run `inner`, or the control plane's decisions.
pub(super) fn run<S: Switch>(
    experiment: &Experiment,
    system: RackSystem<S>,
    inner: Option<&ServerSpec>,
    scoring: Scoring,
) -> Result<Outcome, SimError> {
    let mut rack = Rack::new(experiment, system, inner, scoring)?;
    rack.first_policy()?;
    rack.run()?;
    let in_flight = rack.servers.iter().map(|server| server.in_flight()).sum();
    check_end(experiment, in_flight)?;
    Ok(rack.into_outcome())
}

/// Runs the experiment, its servers under the control plane, to its end, or until its p99 is certain to exceed the rival's.
pub(super) fn run_against<S: Switch>(
    experiment: &Experiment,
    system: RackSystem<S>,
    scoring: Scoring,
    rival: Rival,
) -> Result<Option<Outcome>, SimError> {
    let mut rack = Rack::new(experiment, system, None, scoring)?;
    rack.rival = Some(rival);
    rack.interval_ns = rival.look_every_ns(experiment);
    rack.tick_ns = rack.interval_ns;
    rack.first_policy()?;
    let to_the_end = rack.run()?;
    Ok(to_the_end.then(|| rack.into_outcome()))
}

struct Rack<'a, S> {
    name: &'static str,
    params: Params,
    switch: S,
    control: Option<ControlPlane>,
    scoring: Scoring,
    adapting: bool,
    bounces_all: bool,
    agents: Option<Vec<Agent>>,
    duties: Vec<Duty>,
    servers: Vec<Box<dyn SimulatedServer>>,
    /// Cores that each server has at present.
    cores: Vec<usize>,
    steps: Agenda,
    standings: Standings,
    flights: Flights,
    down: Link<ToServer>,
    up: Link<Upward>,
    rtt_ns: u64,
    /// Capacity last reserved in the switch, in requests.
    room: usize,
    arrivals: RequestStream<'a>,
    next_change: usize,
    change_ns: u64,
    /// When the control plane next reads the registers, or a trial next compares itself with its rival.
    tick_ns: u64,
    interval_ns: u64,
    /// When the control plane last read the registers.
    looked_ns: u64,
    rival: Option<Rival>,
    /// When the scores of the present candidates are ready.
    planned_ns: u64,
    scores: Vec<f64>,
    now_ns: u64,
    measures: RackMeasures<'a>,
    left: Vec<Left>,
    withdrawn: Vec<SimRequest>,
}

impl<'a, S: Switch> Rack<'a, S> {
    fn new(
        experiment: &'a Experiment,
        system: RackSystem<S>,
        inner: Option<&ServerSpec>,
        scoring: Scoring,
    ) -> Result<Self, SimError> {
        let mut shape = experiment.shape();
        let count = experiment.servers;
        let mut servers = Vec::with_capacity(count);
        for number in 0..count as u64 {
            shape.seed = experiment.seed ^ (number + 1).rotate_left(32);
            servers.push(match inner {
                Some(inner) => server::server(inner, &shape, experiment.costs)?,
                None => server::instructed(&shape, experiment.costs),
            });
        }
        let agents =
            (system.bouncing != Bouncing::Off).then(|| vec![Agent::new(&shape.ascending()); count]);
        let interval_ns = match (&system.control, system.adapting) {
            (Some(control), true) => control.rules().glance_ns(),
            _ => NEVER,
        };
        Ok(Self {
            name: system.name,
            params: system.params,
            switch: system.switch,
            control: system.control,
            scoring,
            adapting: system.adapting,
            bounces_all: system.bouncing == Bouncing::All,
            agents,
            duties: vec![Duty::default(); count],
            standings: Standings::new(vec![experiment.workers; count]),
            servers,
            cores: vec![experiment.workers; count],
            steps: Agenda::new(count),
            flights: Flights::default(),
            down: Link::new(system.rtt_ns / 2),
            up: Link::new(system.rtt_ns - system.rtt_ns / 2),
            rtt_ns: system.rtt_ns,
            room: 0,
            arrivals: RequestStream::new(experiment),
            next_change: 0,
            change_ns: change_ns(experiment, 0),
            tick_ns: interval_ns,
            interval_ns,
            looked_ns: 0,
            rival: None,
            planned_ns: NEVER,
            scores: Vec::new(),
            now_ns: 0,
            measures: RackMeasures::new(experiment),
            left: Vec::new(),
            withdrawn: Vec::new(),
        })
    }

    /// The policy generated offline, from the declared workload.
    fn first_policy(&mut self) -> Result<(), SimError> {
        let experiment = self.measures.common.experiment;
        let workers = experiment.total_workers();
        let load = experiment
            .workload
            .load_for_rate(experiment.rate_rps(), workers);
        self.score_candidates(load)?;
        self.take_effect();
        Ok(())
    }

    /// Runs until no request is in flight (`true`) or a rival has won (`false`). On a tie, ends come before beginnings, and reports before decisions.
    fn run(&mut self) -> Result<bool, SimError> {
        loop {
            let step_ns = self.steps.first_ns();
            let (up_ns, down_ns) = (self.up.next_ns(), self.down.next_ns());
            let arrival_ns = self.arrivals.next_ns();
            let links_ns = up_ns.min(down_ns);
            let work_ns = step_ns.min(links_ns).min(arrival_ns);
            let clock_ns = self.tick_ns.min(self.change_ns).min(self.planned_ns);
            if work_ns == NEVER {
                self.measures.common.totals.cut_off = self.arrivals.is_cut_off();
                return Ok(true);
            }
            self.advance_to(work_ns.min(clock_ns));
            if step_ns <= self.now_ns {
                self.step_server(self.steps.first());
            } else if up_ns <= self.now_ns {
                self.at_switch_from_server();
            } else if clock_ns <= self.now_ns {
                if !self.clock()? {
                    return Ok(false);
                }
            } else if arrival_ns <= self.now_ns {
                self.at_switch_from_client();
            } else {
                self.at_server();
            }
        }
    }

    /// Cores that idle while a request waits, at a server or in the switch, are wasted.
    #[inline]
    fn advance_to(&mut self, now_ns: u64) {
        let held = self.switch.held();
        self.standings.elapsed(now_ns - self.now_ns, held);
        self.now_ns = now_ns;
    }

    #[inline]
    fn step_server(&mut self, server: usize) {
        self.servers[server].step(&mut self.left);
        self.after(server);
    }

    /// Sends the requests that left the server back to the switch.
    #[inline]
    fn after(&mut self, server: usize) {
        self.steps.set(server, self.servers[server].next_ns());
        self.standings.note(server, self.servers[server].as_ref());
        if self.left.is_empty() {
            return;
        }
        let queue = self.servers[server].in_flight() as u32;
        for left in &self.left {
            let (index, mark) = untag(left.request.tag);
            self.up.send(
                self.now_ns,
                Upward::Reply(Reply {
                    server: ServerId(server as u16),
                    class: ClassId(left.request.taken_for),
                    index: index as u32,
                    mark,
                    execution_ns: if left.shed {
                        0
                    } else {
                        left.request.service_ns
                    },
                    queue,
                }),
            );
        }
        self.left.clear();
    }

    #[inline]
    fn at_switch_from_client(&mut self) {
        let Some(request) = self.arrivals.take() else {
            return;
        };
        self.measures.common.arrived(&request);
        let index = self.flights.begin(request);
        if self.flights.span() > self.room {
            self.make_room();
        }
        self.route(index, Packet::new(ClassId(request.taken_for), index as u32));
    }

    /// The limit of queues also applies to held requests.
    #[cold]
    fn make_room(&mut self) {
        self.room = (2 * self.room).max(1024);
        let limit = self.measures.common.experiment.queue_limit;
        self.switch.grow(self.room.min(limit));
    }

    #[inline]
    fn route(&mut self, index: u64, packet: Packet) {
        match self.switch.request(self.now_ns, packet) {
            Forward::To(server) => self.send(server, index, packet.mark),
            Forward::Both(original, clone) => {
                self.flights.get(index).copies += 1;
                self.measures.figures.cloned += 1;
                self.send(original, index, Mark::Original);
                self.send(clone, index, Mark::Clone);
            }
            Forward::Held => {}
            Forward::Shed => {
                self.measures
                    .common
                    .dropped(&self.flights.get(index).request);
                self.flights.end_copy(index);
            }
        }
    }

    #[inline]
    fn send(&mut self, server: ServerId, index: u64, mark: Mark) {
        let delivery = ToServer {
            server,
            index,
            mark,
        };
        self.down.send(self.now_ns, delivery);
    }

    #[inline]
    fn at_switch_from_server(&mut self) {
        match self.up.receive() {
            Some(Upward::Reply(reply)) => self.reply(&reply),
            Some(Upward::Bounced(server, packet)) => {
                let index = self.flights.index(packet.index);
                self.forget_at(server, index, packet.class);
                self.route(index, packet);
            }
            Some(Upward::Refused(server, index, class)) => {
                self.forget_at(server, index, class);
                self.flights.end_copy(index);
            }
            None => {}
        }
    }

    /// Tells the policy that the server no longer has this request, which it did not serve.
    fn forget_at(&mut self, server: ServerId, index: u64, class: ClassId) {
        let reply = Reply {
            server,
            class,
            index: index as u32,
            // As of an uncloned request, so that the other copy's response still passes.
            mark: Mark::Plain,
            execution_ns: 0,
            queue: self.servers[server.index()].in_flight() as u32,
        };
        self.switch.reply(self.now_ns, &reply);
    }

    #[inline]
    fn reply(&mut self, reply: &Reply) {
        let passes = self.switch.reply(self.now_ns, reply);
        let index = self.flights.index(reply.index);
        let flight = self.flights.get(index);
        let (request, first) = (flight.request, !flight.answered);
        match (passes, first, reply.execution_ns) {
            (false, ..) => self.measures.figures.filtered += 1,
            (true, false, _) => self.measures.figures.duplicates += 1,
            (true, true, 0) => {
                flight.answered = true;
                self.measures.common.dropped(&request);
            }
            (true, true, _) => {
                flight.answered = true;
                let latency_ns = self.now_ns - request.arrived_ns - self.rtt_ns;
                self.measures
                    .answered(self.now_ns, reply.server, &request, latency_ns);
            }
        }
        self.flights.end_copy(index);
        while let Some((server, packet)) = self.switch.release() {
            let index = self.flights.index(packet.index);
            self.send(server, index, packet.mark);
        }
    }

    #[inline]
    fn at_server(&mut self) {
        let Some(ToServer {
            server,
            index,
            mark,
        }) = self.down.receive()
        else {
            return;
        };
        let at = server.index();
        let request = self.flights.get(index).request;
        if mark == Mark::Clone && !self.servers[at].would_start(&request) {
            self.measures.figures.clones_dropped += 1;
            let refused = Upward::Refused(server, index, ClassId(request.taken_for));
            return self.up.send(self.now_ns, refused);
        }
        self.bounce(at, ClassId(request.taken_for));
        let request = SimRequest {
            tag: tag(index, mark),
            arrived_ns: self.now_ns,
            ..request
        };
        self.servers[at].arrive(self.now_ns, request, &mut self.left);
        self.after(at);
    }

    /// Sends the requests that the arrival of this class evicts back to the switch.
    #[inline]
    fn bounce(&mut self, server: usize, class: ClassId) {
        let Some(agents) = &mut self.agents else {
            return;
        };
        let evicted = agents[server].arrived(class);
        if evicted.is_empty() {
            return;
        }
        self.send_back(server, evicted.iter());
    }

    /// Sends back to the switch the waiting requests of these classes that have not begun.
    #[cold]
    fn send_back(&mut self, server: usize, classes: impl Iterator<Item = usize>) {
        for class in classes {
            self.servers[server].withdraw(ClassId(class as u16), &mut self.withdrawn);
        }
        self.standings.note(server, self.servers[server].as_ref());
        self.measures.figures.bounced += self.withdrawn.len() as u64;
        for request in self.withdrawn.drain(..) {
            let (index, mark) = untag(request.tag);
            let packet = Packet {
                class: ClassId(request.taken_for),
                index: index as u32,
                mark,
                bounced: true,
            };
            let server = ServerId(server as u16);
            self.up.send(self.now_ns, Upward::Bounced(server, packet));
        }
    }

    /// The next event of the clock: a core change, new scores, or a tick. Returns whether the run goes on.
    #[cold]
    fn clock(&mut self) -> Result<bool, SimError> {
        if self.change_ns <= self.now_ns {
            self.core_change();
            return Ok(true);
        }
        if self.planned_ns <= self.now_ns {
            self.planned_ns = NEVER;
            self.take_effect();
            return Ok(true);
        }
        self.tick_ns += self.interval_ns;
        if let Some(rival) = &self.rival {
            return Ok(!self.measures.is_beaten_by(rival));
        }
        self.look_at_registers()?;
        Ok(true)
    }

    /// A server gains or loses a core, and reports it.
    fn core_change(&mut self) {
        let experiment = self.measures.common.experiment;
        let change = experiment.core_changes[self.next_change];
        self.next_change += 1;
        self.change_ns = change_ns(experiment, self.next_change);
        let (at, worker) = (
            change.worker.index() / experiment.workers,
            change.worker.index() % experiment.workers,
        );
        let worker = WorkerId(worker as u16);
        self.servers[at].set_worker(self.now_ns, worker, change.present, &mut self.left);
        self.after(at);
        if change.present {
            self.cores[at] += 1;
        } else {
            self.cores[at] -= 1;
        }
        let server = ServerId(at as u16);
        self.switch.capacity(server, self.cores[at]);
        if let Some(control) = &mut self.control {
            control.capacity(server, self.cores[at]);
            self.install();
        }
        while let Some((server, packet)) = self.switch.release() {
            let index = self.flights.index(packet.index);
            self.send(server, index, packet.mark);
        }
    }

    /// The control plane reads the registers, if that is due.
    fn look_at_registers(&mut self) -> Result<(), SimError> {
        let (Some(control), true) = (&mut self.control, self.adapting) else {
            return Ok(());
        };
        let Some(shaper) = self.switch.shaper() else {
            return Ok(());
        };
        let monitor = shaper.monitor();
        let elapsed_ns = self.now_ns - self.looked_ns;
        let requests = monitor.readings().iter().map(|reading| reading.count);
        if !control
            .rules()
            .is_due(elapsed_ns, requests.sum(), monitor.overflows())
        {
            return Ok(());
        }
        self.looked_ns = self.now_ns;
        let moved = control.measured(monitor.readings(), elapsed_ns);
        monitor.reset();
        let (load, plan_ns) = (control.load(), control.plan_ns());
        if moved {
            self.score_candidates(load)?;
            self.planned_ns = self.now_ns + plan_ns;
        }
        Ok(())
    }

    /// The candidates get their scores.
    fn score_candidates(&mut self, load: f64) -> Result<(), SimError> {
        let (Some(control), Some(shaper)) = (&self.control, self.switch.shaper()) else {
            return Ok(());
        };
        if !control.candidates().is_empty() {
            let experiment = self.measures.common.experiment;
            self.scores = (self.scoring)(experiment, control, load, shaper.turns())?;
        }
        Ok(())
    }

    /// The best candidate is chosen and installed.
    fn take_effect(&mut self) {
        if let Some(control) = &mut self.control
            && !control.candidates().is_empty()
        {
            control.choose(&self.scores);
        }
        self.install();
    }

    /// Writes the switch's tables, and sends the servers whose role changed their new duty.
    fn install(&mut self) {
        let Some(control) = &self.control else { return };
        control.install(&mut self.switch);
        if self.now_ns > 0 {
            self.measures.replanned(self.now_ns, control);
        }
        for at in 0..self.servers.len() {
            let Some(control) = &self.control else { return };
            let duty = control.duty(ServerId(at as u16));
            if self.bounces_all && self.now_ns > 0 {
                self.send_back(
                    at,
                    0..=self.measures.common.experiment.workload.union().count(),
                );
            }
            if duty == self.duties[at] {
                continue;
            }
            self.servers[at].assign(self.now_ns, &group_shares(&duty), &mut self.left);
            if let Some(agents) = &mut self.agents {
                agents[at].instructed(&duty);
            }
            self.duties[at] = duty;
            self.after(at);
        }
    }

    fn into_outcome(mut self) -> Outcome {
        let mut busy_ns = Vec::with_capacity(self.servers.len());
        for server in &self.servers {
            let work = server.work();
            let total = &mut self.measures.common.totals.work;
            total.busy_ns += work.busy_ns;
            total.preemptions += work.preemptions;
            total.dispatcher_ns += work.dispatcher_ns;
            busy_ns.push(work.busy_ns);
        }
        self.measures.common.totals.work.wasted_ns = self.standings.wasted_ns();
        let control = self.control.as_ref();
        self.measures
            .into_outcome(self.name, &self.params, control, &busy_ns)
    }
}

/// When the core change of this number is due.
fn change_ns(experiment: &Experiment, number: usize) -> u64 {
    let change = experiment.core_changes.get(number);
    change.map_or(NEVER, |change| change.at_ns)
}

/// A server's duty, in the form of its policy.
fn group_shares(duty: &Duty) -> GroupShares {
    GroupShares {
        shares: duty
            .parts
            .iter()
            .map(|part: &Part| Share {
                classes: part.classes,
                workers: part.cores,
            })
            .collect(),
        ascending: duty.ascending.clone(),
    }
}
