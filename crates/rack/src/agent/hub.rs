//! The rack's end on a UDP port, in a thread of its own beside switch and control plane.

use super::key::AgentKey;
use super::message::AGENT_PACKET_BYTES_MAX;
use super::orders::DutyOrders;
use super::registry::{AgentCounts, AgentNews, AgentRegistry, AgentState, AnnouncedServer};
use crate::{RackRoster, ServerAddresses, SwitchTables};
use headway_policy::rack::{Bouncing, ControlPlane, ServerId};
use headway_sync::world;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time within which the hub notices a stop.
const LOOK: Duration = Duration::from_millis(50);

/// The rack's end to which agents report, and from which they get their orders.
pub struct AgentHub {
    socket: UdpSocket,
    agents: RackAgents,
}

/// The rack's end without its socket.
pub struct RackAgents {
    state: Mutex<HubState>,
    tables: Arc<SwitchTables>,
    roster: Option<Arc<RackRoster>>,
    admits: Option<AdmitServer>,
}

/// Adds a server that its agent announced, if it can; it does not wait. An agent whose server is not added announces it again.
pub type AdmitServer = Box<dyn Fn(AnnouncedServer) + Send + Sync>;

/// The rack that a hub is part of.
pub struct HubRack {
    /// The servers whose agents may report.
    pub servers: ServerAddresses,
    /// The port of the switch, at the hub's address.
    pub switch_port: u16,
    /// The requests that servers hand back.
    pub bouncing: Bouncing,
    /// The tables shared with the switch, which reads the agents' reports there.
    pub tables: Arc<SwitchTables>,
    /// Where the servers' places change; none: they stay as they are.
    pub roster: Option<Arc<RackRoster>>,
    /// What becomes of servers that announce themselves; none: they are strangers.
    pub admits: Option<AdmitServer>,
}

struct HubState {
    registry: AgentRegistry,
    orders: DutyOrders,
    /// The roster's revision that the registry knows.
    revision: u64,
}

impl HubState {
    /// Takes over who has which place.
    fn follow_roster(&mut self, roster: &RackRoster) {
        let revision = roster.revision();
        if revision == self.revision {
            return;
        }
        self.revision = revision;
        for (place, member) in (0..).zip(roster.members()) {
            let server = member.map(|member| member.address);
            self.registry.put(ServerId(place), server);
        }
    }
}

impl RackAgents {
    /// The agents of a rack's servers. `draw` returns unpredictable random numbers.
    #[must_use]
    pub fn new(key: AgentKey, rack: HubRack, draw: fn() -> u64) -> Self {
        let HubRack {
            servers,
            switch_port,
            bouncing,
            tables,
            roster,
            admits,
        } = rack;
        let orders = DutyOrders::new(servers.count(), bouncing, draw() >> 1);
        let mut registry = AgentRegistry::new(key, servers, switch_port, draw);
        if admits.is_some() {
            registry = registry.admitting();
        }
        Self {
            state: Mutex::new(HubState {
                registry,
                orders,
                revision: 0,
            }),
            tables,
            roster,
            admits,
        }
    }

    /// Takes a packet and returns the answer, if any. The switch hears of an accepted report by its tables.
    pub fn step(&self, from: SocketAddr, packet: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.lock();
        if let Some(roster) = &self.roster {
            state.follow_roster(roster);
        }
        let HubState {
            registry, orders, ..
        } = &mut *state;
        let order = |server, in_force| orders.unless(server, in_force);
        let (answer, news) = registry.handle(from, packet, order);
        let announced = registry.take_announced();
        drop(state);
        if let (Some(announced), Some(admit)) = (announced, &self.admits) {
            admit(announced);
        }
        let Some(AgentNews { server, report }) = news else {
            return answer;
        };
        let cores = if report.draining {
            0
        } else {
            usize::from(report.workers)
        };
        self.tables.agent_said(server, cores);
        // The answer confirms to a server that leaves that the switch sends it nothing more: until then there is none.
        answer.filter(|_| !report.draining || self.tables.has_left(server))
    }

    /// Takes the duties of the control plane after a look. Servers whose duty changed get the new one with the answer to their next report.
    pub fn follow(&self, control: &ControlPlane) {
        let bytes = self.tables.with_report(|report| report.type_bytes.clone());
        self.lock().orders.follow(control, &bytes);
    }

    /// Counts of agents' packets so far.
    #[must_use]
    pub fn counts(&self) -> AgentCounts {
        *self.lock().registry.counts()
    }

    /// The last report of a server's agent.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn agent(&self, server: ServerId) -> Option<AgentState> {
        self.lock().registry.state(server)
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentHub {
    /// Listens at `at` for the agents of a rack's servers.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub fn bind(at: SocketAddr, key: AgentKey, rack: HubRack) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_read_timeout(Some(LOOK))?;
        let agents = RackAgents::new(key, rack, random);
        Ok(Self { socket, agents })
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers agents until `stopped`, which it notices within 50 ms.
    pub fn run(&self, stopped: &AtomicBool) {
        let mut buffer = [0; AGENT_PACKET_BYTES_MAX];
        while !stopped.load(Ordering::Acquire) {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    if let Some(answer) = self.agents.step(from, &buffer[..length]) {
                        // The agent's next report makes up for a lost answer.
                        let _ = self.socket.send_to(&answer, from);
                    }
                }
                Err(error) if is_timeout(&error) => {}
                // An earlier answer reached a closed port.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => world::sleep(LOOK),
            }
        }
    }

    /// Takes the duties of the control plane after a look. Servers whose duty changed get the new one with the answer to their next report.
    pub fn follow(&self, control: &ControlPlane) {
        self.agents.follow(control);
    }

    /// Counts of agents' packets so far.
    #[must_use]
    pub fn counts(&self) -> AgentCounts {
        self.agents.counts()
    }

    /// The last report of a server's agent.
    ///
    /// # Panics
    /// When there is no such server.
    #[must_use]
    pub fn agent(&self, server: ServerId) -> Option<AgentState> {
        self.agents.agent(server)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A number from the system's source of randomness.
///
/// # Panics
/// When the system fails to deliver one: no session is safe without it.
pub(super) fn random() -> u64 {
    getrandom::u64().expect("the system gives random numbers")
}
