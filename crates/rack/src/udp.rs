//! A switch on a UDP port.

use crate::{PacketSink, RackSwitch, ServerAddresses, SwitchLimits, SwitchTables};
use headway_machine::Clock;
use headway_net::header::HEADER_BYTES;
use headway_net::slot::Peer;
use headway_net::udp::batch::{NamedInbox, NamedOutbox};
use headway_net::udp::{BindError, UdpHub};
use headway_policy::rack::{Liveness, Switch};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a switch that has nothing to do asks for packets before it blocks, ns.
const SPIN_NS: u64 = 50_000;
/// Between two looks for requests that were not answered, ns.
const TICK_NS: u64 = 1_000_000;
/// Looks within which every request is looked at.
const TICKS_A_ROUND: usize = 256;

/// A switch on a UDP port: everything comes and goes through one socket.
pub struct UdpSwitch<S> {
    switch: RackSwitch<S>,
    hub: Arc<UdpHub>,
    inbox: NamedInbox,
    outbox: Outgoing,
    clock: Clock,
    next_tick_ns: u64,
    tables: Option<Arc<SwitchTables>>,
    generation: u64,
    /// Agents' reports heard, by server.
    heard: Vec<u64>,
}

/// Packets on their way out.
struct Outgoing {
    hub: Arc<UdpHub>,
    batch: NamedOutbox,
    unsent: u64,
}

impl Outgoing {
    fn flush(&mut self) {
        self.unsent += self.hub.flush(&mut self.batch) as u64;
    }
}

impl PacketSink for Outgoing {
    #[inline]
    fn send(&mut self, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]) {
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push(to, header, body);
    }
}

/// Ends the loop of a [`UdpSwitch`] from another thread.
#[derive(Clone)]
pub struct SwitchStopper {
    hub: Arc<UdpHub>,
    stopped: Arc<AtomicBool>,
}

impl SwitchStopper {
    /// The loop ends after the batch that it is at.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.hub.wake();
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
    ) -> Result<Self, BindError> {
        let hub = Arc::new(UdpHub::bind(listen)?);
        let clock = Clock::global();
        Ok(Self {
            switch: RackSwitch::new(policy, Peer::from(hub.local_addr()), servers, limits),
            inbox: NamedInbox::new(),
            outbox: Outgoing {
                hub: Arc::clone(&hub),
                batch: hub.outbox(),
                unsent: 0,
            },
            next_tick_ns: clock.now_ns() + TICK_NS,
            clock,
            hub,
            tables: None,
            generation: 0,
            heard: Vec::new(),
        })
    }

    /// Watches which servers answer.
    #[must_use]
    pub fn watching(mut self, liveness: Liveness) -> Self {
        self.switch.watch(liveness);
        self
    }

    /// Takes its tables from a control plane, and tells it its registers, where its policy has any; reports there what it does.
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
            tables.publish_report(&self.switch);
        }
    }

    /// The address bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.hub.local_addr()
    }

    /// What ends [`run`](Self::run).
    #[must_use]
    pub fn stopper(&self, stopped: &Arc<AtomicBool>) -> SwitchStopper {
        SwitchStopper {
            hub: Arc::clone(&self.hub),
            stopped: Arc::clone(stopped),
        }
    }

    /// The switch without its socket.
    #[must_use]
    pub fn switch(&self) -> &RackSwitch<S> {
        &self.switch
    }

    /// Packets that the kernel refused to send.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.outbox.unsent
    }

    /// One batch: what waits at the socket, and now and then a look for requests without an answer. The number of packets received.
    pub fn turn(&mut self) -> usize {
        let received = self.hub.receive(&mut self.inbox);
        let now_ns = self.clock.now_ns();
        let is_tick = now_ns >= self.next_tick_ns;
        self.sync(is_tick);
        for i in 0..received {
            let packet = self.inbox.datagram(i);
            self.switch.step(
                now_ns,
                packet.from,
                packet.bytes,
                packet.is_cut,
                &mut self.outbox,
            );
        }
        if is_tick {
            self.next_tick_ns = now_ns + TICK_NS;
            if let Some(tables) = &self.tables {
                let switch = &mut self.switch;
                tables.hear_agents(&mut self.heard, |server, cores| {
                    switch.agent_said(now_ns, server, cores);
                });
            }
            let slots = self.switch.capacity().div_ceil(TICKS_A_ROUND);
            self.switch.tick(now_ns, slots, &mut self.outbox);
        }
        self.outbox.flush();
        received
    }

    /// Forwards packets until the stopper is used, and reports a last time.
    pub fn run(&mut self, stopped: &AtomicBool) {
        let mut idle_since_ns = self.clock.now_ns();
        while !stopped.load(Ordering::Acquire) {
            if self.turn() > 0 {
                idle_since_ns = self.clock.now_ns();
            } else if self.clock.now_ns() - idle_since_ns > SPIN_NS {
                self.hub.wait(TICK_NS);
            }
        }
        self.sync(true);
    }
}
