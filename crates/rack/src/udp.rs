//! A switch on a port, in a loop of its own.

use crate::port::{LostPackets, PacketPort, PortWaker, UdpPort};
use crate::slo::SloWatch;
use crate::{
    RackRoster, RackSwitch, RosterFollower, ServerAddresses, ServerInterfaces, SwitchLimits,
    SwitchTables,
};
use headway_machine::Clock;
use headway_net::slot::Peer;
use headway_net::udp::BindError;
use headway_policy::rack::{Liveness, Switch};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The time that an idle switch polls for packets before it blocks, ns.
const SPIN_NS: u64 = 50_000;
/// The interval between two looks for unanswered requests, ns.
const TICK_NS: u64 = 1_000_000;
/// The number of looks that together visit every request.
const TICKS_A_ROUND: usize = 256;

/// A switch on one port: the loop around [`RackSwitch`].
pub struct PortSwitch<S, P> {
    switch: RackSwitch<S>,
    port: P,
    clock: Clock,
    next_tick_ns: u64,
    tables: Option<Arc<SwitchTables>>,
    generation: u64,
    /// The number of agents' reports heard, by server.
    heard: Vec<u64>,
    /// The servers' orders, and those carried out.
    roster: Option<(Arc<RackRoster>, RosterFollower)>,
}

/// A switch on a UDP port.
pub type UdpSwitch<S> = PortSwitch<S, UdpPort>;

/// Ends the loop of a [`PortSwitch`] from another thread.
#[derive(Clone)]
pub struct SwitchStopper {
    waker: Arc<dyn PortWaker>,
    stopped: Arc<AtomicBool>,
}

impl SwitchStopper {
    /// Ends the loop after its current batch.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl<S: Switch> UdpSwitch<S> {
    /// Binds `listen`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// [`BindError`], which names the remedy.
    pub fn bind(
        listen: SocketAddr,
        policy: S,
        servers: ServerAddresses,
        limits: SwitchLimits,
        clock: Clock,
    ) -> Result<Self, BindError> {
        let port = UdpPort::bind(listen)?;
        Ok(Self::on(port, policy, servers, limits, clock))
    }
}

impl<S: Switch, P: PacketPort> PortSwitch<S, P> {
    /// A switch on this port. It takes every time from `clock`.
    ///
    /// # Panics
    /// When a value of `limits` is out of its range.
    #[must_use]
    pub fn on(
        port: P,
        policy: S,
        servers: ServerAddresses,
        limits: SwitchLimits,
        clock: Clock,
    ) -> Self {
        let own = Peer::from(port.local_addr());
        Self {
            switch: RackSwitch::new(policy, own, servers, limits),
            port,
            next_tick_ns: clock.now_ns() + TICK_NS,
            clock,
            tables: None,
            generation: 0,
            heard: Vec::new(),
            roster: None,
        }
    }

    /// Watches which servers answer.
    #[must_use]
    pub fn watching(mut self, liveness: Liveness) -> Self {
        self.switch.watch(liveness);
        self
    }

    /// Compares responses with an SLO.
    ///
    /// # Panics
    /// When it watches another number of types.
    #[must_use]
    pub fn watching_slo(mut self, slo: SloWatch) -> Self {
        self.switch.watch_slo(slo);
        self
    }

    /// Believes servers only on the interfaces that lead to them.
    #[must_use]
    pub fn hearing_servers_by(mut self, interfaces: Arc<ServerInterfaces>) -> Self {
        self.switch.hear_servers_by(interfaces);
        self
    }

    /// Takes orders about its servers from `roster`, whose members it was built with; it must be [watching](Self::watching), so that its control plane hears of
    /// their cores.
    #[must_use]
    pub fn with_roster(mut self, roster: Arc<RackRoster>) -> Self {
        let follower = RosterFollower::new(roster.members());
        self.roster = Some((roster, follower));
        self
    }

    /// Connects the switch to a control plane: it installs tables from there, and publishes its report and, where its policy has them, its registers.
    #[must_use]
    pub fn with_tables(mut self, tables: Arc<SwitchTables>) -> Self {
        self.tables = Some(tables);
        self.heard = vec![0; self.switch.servers()];
        self.sync(true);
        self
    }

    /// Newer tables take effect before the next packet.
    #[inline]
    fn sync(&mut self, is_tick: bool) {
        let Some(tables) = &self.tables else {
            return;
        };
        if let Some(shaper) = self.switch.policy().shaper() {
            self.generation = tables.install(self.generation, shaper);
            if is_tick {
                tables.publish_readings(shaper);
            }
        }
        if is_tick {
            tables.publish_report(&self.switch, self.port.lost());
        }
    }

    /// The bound address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.port.local_addr()
    }

    /// The stopper that ends [`run`](Self::run).
    #[must_use]
    pub fn stopper(&self, stopped: &Arc<AtomicBool>) -> SwitchStopper {
        SwitchStopper {
            waker: self.port.waker(),
            stopped: Arc::clone(stopped),
        }
    }

    /// The switch without its socket.
    #[must_use]
    pub fn switch(&self) -> &RackSwitch<S> {
        &self.switch
    }

    /// Counts of packets that the port lost.
    #[must_use]
    pub fn lost(&self) -> LostPackets {
        self.port.lost()
    }

    /// Handles one batch of waiting packets, and at intervals looks for unanswered requests. Returns the number of packets received.
    pub fn step(&mut self) -> usize {
        let received = self.port.receive();
        let now_ns = self.clock.now_ns();
        let is_tick = now_ns >= self.next_tick_ns;
        self.sync(is_tick);
        let switch = &mut self.switch;
        self.port.each(|packet, out| {
            switch.step(now_ns, packet, out);
        });
        if is_tick {
            self.next_tick_ns = now_ns + TICK_NS;
            if let Some((roster, follower)) = &mut self.roster {
                self.switch.follow(now_ns, roster, follower);
            }
            if let Some(tables) = &self.tables {
                let switch = &mut self.switch;
                tables.hear_agents(&mut self.heard, |server, cores| {
                    switch.agent_said(now_ns, server, cores);
                });
            }
            let slots = self.switch.capacity().div_ceil(TICKS_A_ROUND);
            self.switch.tick(now_ns, slots, self.port.sink());
        }
        self.port.flush();
        if is_tick && let Some(tables) = &self.tables {
            let policy = self.switch.policy();
            tables.note_left(|server| policy.may_send(server));
        }
        received
    }

    /// Forwards packets until the stopper is used, then publishes a last report.
    pub fn run(&mut self, stopped: &AtomicBool) {
        let mut idle_since_ns = self.clock.now_ns();
        while !stopped.load(Ordering::Acquire) {
            if self.step() > 0 {
                idle_since_ns = self.clock.now_ns();
            } else if self.clock.now_ns() - idle_since_ns > SPIN_NS {
                self.port.wait(TICK_NS);
            }
        }
        self.sync(true);
    }
}
