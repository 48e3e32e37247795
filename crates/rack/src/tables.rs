//! What the control plane and the switch tell each other: registers one way, tables the other. Neither waits for the other.

use crate::{LostPackets, PacketCounts, RackSwitch};
use headway_policy::ClassId;
use headway_policy::rack::{ControlPlane, DemandReading, ServerId, Shaper, Switch};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// One type's registers as last published.
#[derive(Default)]
struct PublishedReading {
    count: AtomicU64,
    execution_ns: AtomicU64,
}

/// What a server's agent last said.
#[derive(Default)]
struct PublishedAgent {
    /// Reports so far.
    beats: AtomicU64,
    /// Workers in use; 0: the server leaves.
    cores: AtomicUsize,
}

/// What a switch did and what its servers owe, as it last said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchReport {
    /// Packets by what became of them.
    pub counts: PacketCounts,
    /// Packets that its port lost; `None` where it has none, as in the kernel.
    pub lost: Option<LostPackets>,
    /// Requests at servers or held.
    pub under_way: usize,
    /// Each server's requests that are not answered.
    pub unanswered: Vec<u32>,
    /// The cores that each server counts as having, 0 while it is silent. Empty where servers are not watched.
    pub cores: Vec<usize>,
    /// The type bytes of the types known so far, by class.
    pub type_bytes: Vec<u8>,
}

/// A switch's registers and tables, shared with its control plane.
///
/// There are two copies of the tables and one word that counts their generations. The control plane writes the copy that is not in
/// use, then the word; the switch compares the word once a batch, and takes the other copy between two packets.
pub struct SwitchTables {
    readings: Box<[PublishedReading]>,
    generation: AtomicU64,
    /// The tables of generation g are copy g mod 2. Both sides lock one only for as long as no other wants it.
    copies: [Mutex<Option<ControlPlane>>; 2],
    report: Mutex<SwitchReport>,
    /// By server; empty where no agents report.
    agents: Box<[PublishedAgent]>,
}

impl SwitchTables {
    /// For so many declared types; no tables yet.
    #[must_use]
    pub fn new(types: usize) -> Self {
        Self {
            readings: (0..=types).map(|_| PublishedReading::default()).collect(),
            generation: AtomicU64::new(0),
            copies: [const { Mutex::new(None) }; 2],
            report: Mutex::default(),
            agents: Box::default(),
        }
    }

    /// The same where agents of so many servers may report.
    #[must_use]
    pub fn with_agents(mut self, servers: usize) -> Self {
        self.agents = (0..servers).map(|_| PublishedAgent::default()).collect();
        self
    }

    /// The agents' side: a server lives, and has so many cores; 0 when it is about to leave.
    pub fn agent_said(&self, server: ServerId, cores: usize) {
        if let Some(agent) = self.agents.get(server.index()) {
            agent.cores.store(cores, Ordering::Relaxed);
            agent.beats.fetch_add(1, Ordering::Release);
        }
    }

    /// The switch's side: hears those agents that reported since `heard`, which has a count for each server, or none.
    pub fn hear_agents(&self, heard: &mut [u64], mut said: impl FnMut(ServerId, usize)) {
        for (number, (agent, heard)) in self.agents.iter().zip(heard).enumerate() {
            let beats = agent.beats.load(Ordering::Acquire);
            if beats != *heard {
                *heard = beats;
                said(ServerId(number as u16), agent.cores.load(Ordering::Relaxed));
            }
        }
    }

    /// The control plane's side: the next tables are those of `control` as it is now.
    pub fn publish(&self, control: &ControlPlane) {
        let next = self.generation.load(Ordering::Relaxed) + 1;
        let copy = &self.copies[(next % 2) as usize];
        *copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(control.clone());
        self.generation.store(next, Ordering::Release);
    }

    /// The control plane whose tables were published last, as it was then.
    #[must_use]
    pub fn last(&self) -> Option<ControlPlane> {
        let copy = &self.copies[(self.generation() % 2) as usize];
        copy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of tables published so far.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The switch's side: installs the newest tables, if they are newer than `seen`, and returns their generation. When the control plane
    /// writes just this copy, which takes two publications during this call, the next batch takes it.
    #[inline]
    pub fn install(&self, seen: u64, shaper: &mut Shaper) -> u64 {
        let newest = self.generation();
        if newest == seen {
            return seen;
        }
        self.install_newer(newest, seen, shaper)
    }

    #[cold]
    fn install_newer(&self, newest: u64, seen: u64, shaper: &mut Shaper) -> u64 {
        let Ok(copy) = self.copies[(newest % 2) as usize].try_lock() else {
            return seen;
        };
        if let Some(control) = &*copy {
            control.install(shaper);
        }
        newest
    }

    /// The switch's side: makes its registers known. Counts go on, they are not reset.
    pub fn publish_readings(&self, shaper: &mut Shaper) {
        self.set_readings(shaper.monitor().readings());
    }

    /// The side of a switch whose registers are elsewhere: makes them known, counted from the beginning.
    pub fn set_readings(&self, readings: &[DemandReading]) {
        for (published, reading) in self.readings.iter().zip(readings) {
            published.count.store(reading.count, Ordering::Relaxed);
            published
                .execution_ns
                .store(reading.execution_ns, Ordering::Relaxed);
        }
    }

    /// The switch's side: says what it did and what it knows of its servers. While somebody reads the last report it says nothing.
    pub fn publish_report<S: Switch>(&self, switch: &RackSwitch<S>, lost: LostPackets) {
        let Ok(mut report) = self.report.try_lock() else {
            return;
        };
        let servers = || (0..switch.servers() as u16).map(ServerId);
        report.counts = *switch.counts();
        report.lost = Some(lost);
        report.under_way = switch.under_way();
        report.unanswered.clear();
        report
            .unanswered
            .extend(servers().map(|server| switch.unanswered(server)));
        report.cores.clear();
        report
            .cores
            .extend(servers().filter_map(|server| switch.cores(server)));
        report.type_bytes.clear();
        report.type_bytes.extend_from_slice(switch.type_bytes());
    }

    /// The side of a switch whose counts are elsewhere: says what it did.
    pub fn set_report(&self, report: SwitchReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// What the switch last said.
    #[must_use]
    pub fn report(&self) -> SwitchReport {
        self.with_report(SwitchReport::clone)
    }

    /// Reads what the switch last said; while `read` runs, the switch says nothing new.
    pub(crate) fn with_report<T>(&self, read: impl FnOnce(&SwitchReport) -> T) -> T {
        read(&self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The control plane's side: a type's registers as last published, counted from the beginning.
    #[must_use]
    pub fn reading(&self, class: ClassId) -> DemandReading {
        let published = &self.readings[class.index()];
        DemandReading {
            count: published.count.load(Ordering::Relaxed),
            execution_ns: published.execution_ns.load(Ordering::Relaxed),
        }
    }

    /// Types, UNKNOWN included.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.readings.len()
    }
}
