//! The exchange between switch and control plane: registers one way, tables the other. Neither waits for the other.

use crate::slo::SloCounts;
use crate::{KernelCounts, LostPackets, PacketCounts, RackSwitch};
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

/// The last report of a server's agent.
#[derive(Default)]
struct PublishedAgent {
    /// Reports so far.
    beats: AtomicU64,
    /// Workers in use; 0 while the server leaves.
    cores: AtomicUsize,
    /// The last report with workers.
    served: AtomicU64,
    /// The last report since which the switch sends the server nothing.
    left: AtomicU64,
}

/// A switch's last report: its packets, and its servers' unanswered requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchReport {
    /// Counts of packets by fate.
    pub counts: PacketCounts,
    /// Further counts of a switch in the kernel.
    pub kernel: Option<KernelCounts>,
    /// Packets that its port lost; `None` for a switch without a port, as in the kernel.
    pub lost: Option<LostPackets>,
    /// Requests at servers or held.
    pub under_way: usize,
    /// Each server's unanswered requests that the policy counts: none once it is silent.
    pub unanswered: Vec<u32>,
    /// Each server's requests whose answers still pass: of a silent one too.
    pub awaited: Vec<u32>,
    /// The cores that the switch assumes for each server, 0 while it is silent. Empty where servers are not watched.
    pub cores: Vec<usize>,
    /// The type bytes of the types known so far, by class.
    pub type_bytes: Vec<u8>,
    /// Counts of the SLO that the switch watches.
    pub slo: Option<SloCounts>,
}

/// A switch's registers and tables, shared with its control plane.
///
/// There are two copies of the tables and one word that counts their generations. The control plane writes the copy that is not in
/// use, then the word; the switch compares the word once a batch, and takes the other copy between two packets.
pub struct SwitchTables {
    readings: Box<[PublishedReading]>,
    /// Requests that overflowed so far.
    overflowed: AtomicU64,
    generation: AtomicU64,
    /// The tables of generation g are copy g mod 2. The control plane writes the copy that the switch does not use, so neither side waits for a lock.
    copies: [Mutex<Option<ControlPlane>>; 2],
    report: Mutex<SwitchReport>,
    /// The agents' last reports by server; empty where no agents report.
    agents: Box<[PublishedAgent]>,
}

impl SwitchTables {
    /// Registers for this many declared types, and no tables yet.
    #[must_use]
    pub fn new(types: usize) -> Self {
        Self {
            readings: (0..=types).map(|_| PublishedReading::default()).collect(),
            overflowed: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            copies: [const { Mutex::new(None) }; 2],
            report: Mutex::default(),
            agents: Box::default(),
        }
    }

    /// Adds room for the reports of this many servers' agents.
    #[must_use]
    pub fn with_agents(mut self, servers: usize) -> Self {
        self.agents = (0..servers).map(|_| PublishedAgent::default()).collect();
        self
    }

    /// The agents' side: reports that a server lives, with its cores; 0 when it is about to leave.
    pub fn agent_said(&self, server: ServerId, cores: usize) {
        if let Some(agent) = self.agents.get(server.index()) {
            let beat = agent.beats.load(Ordering::Relaxed) + 1;
            if cores > 0 {
                agent.served.store(beat, Ordering::Relaxed);
            }
            agent.cores.store(cores, Ordering::Relaxed);
            agent.beats.store(beat, Ordering::Release);
        }
    }

    /// The switch's side: calls `said` for each agent that reported since `heard`, which counts the reports of each server.
    pub fn hear_agents(&self, heard: &mut [u64], mut said: impl FnMut(ServerId, usize)) {
        for (number, (agent, heard)) in self.agents.iter().zip(heard).enumerate() {
            let beats = agent.beats.load(Ordering::Acquire);
            if beats != *heard {
                *heard = beats;
                said(ServerId(number as u16), agent.cores.load(Ordering::Relaxed));
            }
        }
    }

    /// The switch's side: asks `may_send` of each server that leaves, after a flush of what it sent so far.
    pub fn note_left(&self, may_send: impl Fn(ServerId) -> bool) {
        for (number, agent) in self.agents.iter().enumerate() {
            let beat = agent.beats.load(Ordering::Acquire);
            let leaves = beat > 0 && agent.cores.load(Ordering::Relaxed) == 0;
            if leaves && !may_send(ServerId(number as u16)) {
                agent.left.store(beat, Ordering::Release);
            }
        }
    }

    /// The agents' side: whether the switch sends nothing more to a server that leaves.
    #[must_use]
    pub fn has_left(&self, server: ServerId) -> bool {
        let agent = self.agents.get(server.index());
        // The switch may have looked at an earlier departure of the server.
        agent.is_some_and(|agent| {
            agent.left.load(Ordering::Acquire) > agent.served.load(Ordering::Relaxed)
        })
    }

    /// The control plane's side: publishes the current tables of `control`.
    pub fn publish(&self, control: &ControlPlane) {
        let next = self.generation.load(Ordering::Relaxed) + 1;
        let copy = &self.copies[(next % 2) as usize];
        *copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(control.clone());
        self.generation.store(next, Ordering::Release);
    }

    /// A copy of the control plane at its last publication.
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

    /// The switch's side: installs the newest tables, if they are newer than `seen`, and returns their generation. When the control plane is
    /// writing this copy, which takes two publications during this call, the next batch installs it.
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

    /// The switch's side: publishes its registers. Counts are cumulative.
    pub fn publish_readings(&self, shaper: &mut Shaper) {
        let monitor = shaper.monitor();
        self.set_readings(monitor.readings());
        self.set_overflowed(monitor.overflows());
    }

    /// The switch's side: publishes the requests that overflowed, counted from the beginning.
    pub fn set_overflowed(&self, overflowed: u64) {
        self.overflowed.store(overflowed, Ordering::Relaxed);
    }

    /// The control plane's side: requests that overflowed, counted from the beginning.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// The side of a switch whose registers are elsewhere: publishes them, counted from the beginning.
    pub fn set_readings(&self, readings: &[DemandReading]) {
        for (published, reading) in self.readings.iter().zip(readings) {
            published.count.store(reading.count, Ordering::Relaxed);
            published
                .execution_ns
                .store(reading.execution_ns, Ordering::Relaxed);
        }
    }

    /// The switch's side: publishes a report. It skips this one while another thread reads the last.
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
        report.awaited.clear();
        report
            .awaited
            .extend(servers().map(|server| switch.awaited(server)));
        report.cores.clear();
        report
            .cores
            .extend(servers().filter_map(|server| switch.cores(server)));
        report.type_bytes.clear();
        report.type_bytes.extend_from_slice(switch.type_bytes());
        // Copies into the counts that are there, so that only the first report allocates.
        match (&mut report.slo, switch.slo_counts()) {
            (Some(published), Some(counts)) => published.copy_from(counts),
            (published, counts) => *published = counts.cloned(),
        }
    }

    /// The side of a switch whose counts are elsewhere: publishes its report.
    pub fn set_report(&self, report: SwitchReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// The switch's last report.
    #[must_use]
    pub fn report(&self) -> SwitchReport {
        self.with_report(SwitchReport::clone)
    }

    /// Reads the switch's last report; while `read` runs, the switch publishes no new one.
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

    /// The number of types, UNKNOWN included.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.readings.len()
    }
}
