//! 200 random kills of servers, agents, the control plane and clients, under load: only requests that a killed server held are lost.
//!
//! Servers are threads that hold their requests while a gate is shut, so that the test knows which requests a killed server held.

mod common;

use common::{header, request, response};
use headway_machine::Clock;
use headway_machine::thread::uninterrupted;
use headway_net::header::Status;
use headway_policy::ClassHint;
use headway_policy::rack::{
    Bouncing, Cloning, ControlPlane, ControlRules, Delta, Liveness, LivenessRules, ServerId,
    Shaper, Turns,
};
use headway_rack::agent::{
    AgentEvents, AgentHub, AgentKey, HubRack, OrderedDuty, ServerStatus, connect_agent, run_agent,
};
use headway_rack::{
    RackControl, ServerAddresses, SwitchLimits, SwitchReport, SwitchStopper, SwitchTables,
    UdpSwitch, run_control,
};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
const KILLS: usize = 200;
/// Requests under way at each kill.
const REQUESTS: u32 = 9;
const SEED: u64 = 20_251_124;
const FOREVER: Duration = Duration::from_secs(60);

fn wait(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + FOREVER;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// A thread that a test kills: it stops at once, without cleanup.
struct Killable {
    killed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Killable {
    fn start(body: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let killed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&killed);
        let thread = Some(std::thread::spawn(move || body(&flag)));
        Self { killed, thread }
    }

    fn kill(&mut self) {
        self.killed.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // An agent ends by unwinding.
            let _ = thread.join();
        }
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Answers its requests while the gate is open.
fn server(at: SocketAddr, gate: &Arc<AtomicBool>) -> Killable {
    let gate = Arc::clone(gate);
    let socket = UdpSocket::bind(at).expect("the server's port");
    let patience = Some(Duration::from_millis(1));
    socket.set_read_timeout(patience).unwrap();
    Killable::start(move |killed| {
        let mut held: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        let mut buffer = [0; 2048];
        while !killed.load(Ordering::Acquire) {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                held.push((from, buffer[..length].to_vec()));
            }
            if gate.load(Ordering::Acquire) {
                for (from, asked) in held.drain(..) {
                    let answer = response(&asked, Status::Ok, 10_000, b"");
                    socket.send_to(&answer, from).unwrap();
                }
            }
        }
    })
}

/// The real agent's loop for a server that is one worker.
fn agent(rack: SocketAddr, server: SocketAddr) -> Killable {
    struct Events {
        port: u16,
        killed: Arc<AtomicBool>,
        in_force: u64,
    }
    impl AgentEvents for Events {
        fn status(&mut self) -> ServerStatus {
            if self.killed.load(Ordering::Acquire) {
                // Skips the last report of an agent that is stopped.
                std::panic::resume_unwind(Box::new("killed"));
            }
            ServerStatus {
                port: self.port,
                workers: 1,
                in_force: self.in_force,
                ..ServerStatus::default()
            }
        }
        fn ordered(&mut self, order: &OrderedDuty, _switch: SocketAddr) {
            self.in_force = order.number;
        }
        fn joined(&mut self) {}
        fn unanswered(&mut self) {}
    }
    let killed = Arc::new(AtomicBool::new(false));
    let mut events = Events {
        port: server.port(),
        killed: Arc::clone(&killed),
        in_force: 0,
    };
    let thread = std::thread::spawn(move || {
        let socket = connect_agent(rack, server).unwrap();
        run_agent(
            &socket,
            rack,
            key(),
            Clock::global(),
            &AtomicBool::new(false),
            &mut events,
        );
    });
    Killable {
        killed,
        thread: Some(thread),
    }
}

fn key() -> AgentKey {
    AgentKey::new(b"sixteen bytes and more").unwrap()
}

fn types() -> [ClassHint; 2] {
    [ClassHint::new(10e3, 0.5), ClassHint::new(90e3, 0.5)]
}

/// A control plane with the port of its agents.
struct Control {
    thread: Killable,
    /// `None` after a kill, so that its port is free.
    hub: Option<Arc<AgentHub>>,
    hearing: Killable,
}

impl Control {
    fn start(at: SocketAddr, addresses: &ServerAddresses, tables: &Arc<SwitchTables>) -> Self {
        let rules = ControlRules {
            delta: Delta::Cores(0.5),
            ..ControlRules::default()
        };
        let mut control = ControlPlane::new(&[1; SERVERS], &types(), rules);
        let scores: Vec<f64> = control.candidates().iter().map(|_| 1.0).collect();
        control.choose(&scores);
        let rack = HubRack {
            servers: addresses.clone(),
            switch_port: 1,
            bouncing: Bouncing::Longer,
            tables: Arc::clone(tables),
            roster: None,
            admits: None,
        };
        let hub = Arc::new(AgentHub::bind(at, key(), rack).expect("the agents' port"));
        let hears = Arc::clone(&hub);
        let hearing = Killable::start(move |killed| hears.run(killed));
        let (follows, tables) = (Arc::clone(&hub), Arc::clone(tables));
        let thread = Killable::start(move |killed| {
            let control = RackControl::new(control, tables);
            // Alternates between one group and one group per type.
            let scored = AtomicU64::new(0);
            let score = |task: &headway_rack::ScoringTask| {
                let turn = scored.fetch_add(1, Ordering::Relaxed) as usize;
                let candidates = task.control.candidates().len();
                let score = |candidate| f64::from(u8::from(candidate != turn % candidates));
                (0..candidates).map(score).collect()
            };
            run_control(control, Clock::global(), killed, score, |control| {
                follows.follow(control);
            });
        });
        Self {
            thread,
            hub: Some(hub),
            hearing,
        }
    }

    fn kill(&mut self) {
        self.thread.kill();
        self.hearing.kill();
        self.hub = None;
    }
}

struct KillableRack {
    gate: Arc<AtomicBool>,
    at: [SocketAddr; SERVERS],
    addresses: ServerAddresses,
    servers: Vec<Killable>,
    agents: Vec<Killable>,
    agents_at: SocketAddr,
    control: Control,
    tables: Arc<SwitchTables>,
    switch_at: SocketAddr,
    stopper: SwitchStopper,
    switch: Option<JoinHandle<u64>>,
    client: UdpSocket,
    index: u32,
}

/// Port `port` of an address that is this process's own. Whoever is killed comes back at the same port, so none may be one that the system gives to sockets
/// that ask for any.
fn own(port: u16) -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 128 | high, middle, low], port))
}

impl KillableRack {
    fn start() -> Self {
        let gate = Arc::new(AtomicBool::new(true));
        let (at, agents_at) = ([7001, 7002, 7003].map(own), own(7101));
        let addresses = ServerAddresses::new(&at).unwrap();
        let tables = Arc::new(SwitchTables::new(2).with_agents(SERVERS));
        let shaper = Shaper::new(2, SERVERS, Turns::Even, Cloning::Off, 64);
        let limits = SwitchLimits::new(2);
        let rules = LivenessRules {
            silent_ns: 40_000_000,
            ask_ns: 80_000_000,
        };
        let mut switch = UdpSwitch::bind(
            own(7100),
            shaper,
            addresses.clone(),
            limits,
            Clock::global(),
        )
        .unwrap()
        .watching(Liveness::new(&[1; SERVERS], rules));
        let control = Control::start(agents_at, &addresses, &tables);
        wait("there are tables", || tables.generation() > 0);
        switch = switch.with_tables(Arc::clone(&tables));
        let switch_at = switch.local_addr();
        let stopped = Arc::new(AtomicBool::new(false));
        let stopper = switch.stopper(&stopped);
        let thread = std::thread::spawn(move || {
            switch.run(&stopped);
            switch.switch().counts().spoofed
        });
        let rack = Self {
            servers: at.iter().map(|&at| server(at, &gate)).collect(),
            agents: at.iter().map(|&at| agent(agents_at, at)).collect(),
            gate,
            at,
            addresses,
            agents_at,
            control,
            tables,
            switch_at,
            stopper,
            switch: Some(thread),
            client: client(switch_at),
            index: 0,
        };
        rack.all_present();
        rack
    }

    fn report(&self) -> SwitchReport {
        self.tables.report()
    }

    fn all_present(&self) {
        let hub = self.control.hub.as_ref().expect("it runs");
        let agent = |number| hub.agent(ServerId(number));
        wait("all agents have joined", || {
            (0..SERVERS as u16).all(|number| agent(number).is_some())
        });
        wait("all servers are present", || {
            let cores = self.report().cores;
            cores.len() == SERVERS && cores.iter().all(|&cores| cores > 0)
        });
        wait("the tables have all servers", || {
            let tables = self.tables.last();
            let has = |control: &ControlPlane, server| control.layout().capacity(server) > 0;
            tables.is_some_and(|control| (0..SERVERS).all(|server| has(&control, server)))
        });
    }

    fn ask(&mut self) -> std::ops::Range<u32> {
        let first = self.index;
        self.index += REQUESTS;
        for index in first..self.index {
            let asked = request((index % 2) as u8, index, b"");
            self.client.send(&asked).unwrap();
        }
        first..self.index
    }

    /// Waits for `due` answers to these requests, and for none more.
    fn answered(&self, asked: &std::ops::Range<u32>, due: u32, context: &str) {
        let mut buffer = [0; 64];
        let mut seen = Vec::new();
        while seen.len() < due as usize {
            let length = uninterrupted(|| self.client.recv(&mut buffer));
            let length = length.unwrap_or_else(|error| {
                panic!(
                    "{context}: {} of {due}: {error}: {:?}",
                    seen.len(),
                    self.report()
                )
            });
            let answer = header(&buffer[..length]);
            assert_eq!(answer.flag.status(), Status::Ok, "{context}");
            assert!(asked.contains(&answer.index), "{context}");
            assert!(!seen.contains(&answer.index), "{context}: twice");
            seen.push(answer.index);
        }
    }

    /// The requests that each server holds while the gate is shut, one at least. On a busy machine a server may count as silent meanwhile and its
    /// requests are written off, or it gets none; then they are answered and others sent.
    fn held(&mut self) -> (std::ops::Range<u32>, Vec<u32>) {
        loop {
            // The report is a moment old: it may still describe the previous requests.
            wait("nothing is under way", || {
                self.report().unanswered.iter().sum::<u32>() == 0
            });
            self.gate.store(false, Ordering::Release);
            let asked = self.ask();
            let is_there =
                |report: &SwitchReport| report.unanswered.iter().sum::<u32>() == REQUESTS;
            let is_silent = |report: &SwitchReport| report.cores.contains(&0);
            wait("all requests are at servers", || {
                let report = self.report();
                is_there(&report) || is_silent(&report)
            });
            let report = self.report();
            // The switch misses only a server that owes it something.
            if is_there(&report) && !report.unanswered.contains(&0) {
                return (asked, report.unanswered);
            }
            self.gate.store(true, Ordering::Release);
            self.answered(&asked, REQUESTS, "a server was silent");
            self.all_present();
        }
    }
}

fn client(switch: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(switch).unwrap();
    socket.set_read_timeout(Some(FOREVER)).unwrap();
    socket
}

/// A small random generator with the same kills in every run.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 33) as usize
}

#[test]
fn two_hundred_kills_lose_nothing_but_what_killed_servers_held() {
    let mut rack = KillableRack::start();
    let (mut state, mut kills, mut lost) = (SEED, [0; 4], 0);
    for round in 0..KILLS {
        let kind = next(&mut state) % 4;
        let victim = next(&mut state) % SERVERS;
        let context = format!("kill {round} of kind {kind} at server {victim}");
        kills[kind] += 1;
        let (asked, held) = rack.held();
        let mut due = REQUESTS;
        match kind {
            0 => {
                rack.agents[victim].kill();
                rack.servers[victim].kill();
                due -= held[victim];
                lost += held[victim];
            }
            1 => rack.agents[victim].kill(),
            2 => rack.control.kill(),
            _ => {
                rack.client = client(rack.switch_at);
                due = 0;
            }
        }
        rack.gate.store(true, Ordering::Release);
        rack.answered(&asked, due, &context);
        if kind == 0 {
            wait("the dead server leaves", || {
                rack.report().cores[victim] == 0
            });
            // The switch installs tables before its next packet. Until then they name the server.
            wait("the tables omit the dead server", || {
                let tables = rack.tables.last();
                tables.is_some_and(|control| control.layout().capacity(victim) == 0)
            });
        }
        if kind == 2 {
            // The switch uses the last tables, without a control plane.
            let asked = rack.ask();
            rack.answered(&asked, REQUESTS, &context);
            rack.control = Control::start(rack.agents_at, &rack.addresses, &rack.tables);
        }
        let others = (0..SERVERS).filter(|&server| server != victim || kind != 0);
        let others: Vec<usize> = others.collect();
        wait("the others are present", || {
            let cores = rack.report().cores;
            others.iter().all(|&server| cores[server] > 0)
        });
        let asked = rack.ask();
        rack.answered(&asked, REQUESTS, &context);
        if kind == 0 {
            rack.servers[victim] = server(rack.at[victim], &rack.gate);
        }
        if kind < 2 {
            rack.agents[victim] = agent(rack.agents_at, rack.at[victim]);
        }
        rack.all_present();
    }
    assert!(kills.iter().all(|&kills| kills > 30), "{kills:?}");
    wait(
        "every request is answered, but those of killed servers",
        || {
            let counts = rack.report().counts;
            counts.requests - counts.answered == u64::from(lost)
        },
    );
    assert!(lost > 50, "killed servers held something: {lost}");
    rack.stopper.stop();
    let spoofed = rack.switch.take().map(JoinHandle::join);
    assert!(matches!(spoofed, Some(Ok(0))), "{spoofed:?}");
}
