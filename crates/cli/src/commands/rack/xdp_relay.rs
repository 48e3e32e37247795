//! The thread between the program and the control plane: registers one way, tables the other, and the servers as they come and go.

use super::settings::RackSettings;
use super::status::all_counts;
use super::xdp_devices::AttachedDevices;
use super::xdp_expiry::{ANSWER, SentHistory};
use super::xdp_left::KernelSwitch;
use super::xdp_reach::{ASK_FOR, NEIGHBOURS_EVERY, Reach, ReachError, known_again};
use super::xdp_servers::ServerWatch;
use crate::commands::serve::config::Sourced;
use anyhow::Result;
use headway_machine::Clock;
use headway_policy::rack::{ServerId, Shaper, Switch as _};
use headway_rack::{
    KernelCounts, PacketCounts, RackMember, RackRoster, RosterFollower, RosterPlane, SwitchReport,
    SwitchTables, TypeTable,
};
use headway_xdp::{
    LeftTables, Neighbour, Registers, SwitchError, XdpCounts, neighbour_of, tables_of_places,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two readings of the program's registers: a tenth of the control plane's interval, which bounds the age of a reading.
const ROUND: Duration = Duration::from_millis(1);

/// Transfers registers and tables between the program and the control plane.
pub(super) struct Relay {
    kernel: KernelSwitch,
    /// A copy of the control plane's tables, from which the relay makes the program's.
    shaper: Shaper,
    tables: Arc<SwitchTables>,
    roster: Arc<RackRoster>,
    follower: RosterFollower,
    /// By place.
    servers: Vec<Option<Neighbour>>,
    types: TypeTable,
    /// False if servers answer clients directly.
    sees_responses: bool,
    watch: ServerWatch,
    /// Number of reports of each server's agent.
    heard: Vec<u64>,
    generation: u64,
    history: SentHistory,
    /// Copies that are no longer awaited. A late answer may still come, and takes none back.
    expired: u64,
    /// Copies that servers had when they were removed.
    lost: u64,
    /// Whether the servers changed since the program's tables were made.
    servers_changed: bool,
    next_reach: Instant,
    devices: AttachedDevices,
}

/// Why the program no longer follows the control plane.
#[derive(Debug, thiserror::Error)]
pub(super) enum RelayError {
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Tables(#[from] headway_policy::rack::StepTablesError),
}

impl Relay {
    /// A relay of `shaper`'s tables to the program. `rack` is its servers, and what the control plane publishes.
    pub(super) fn new(
        kernel: KernelSwitch,
        shaper: Shaper,
        settings: &RackSettings,
        rack: (Arc<RackRoster>, Arc<SwitchTables>),
        watch: ServerWatch,
    ) -> Self {
        let declared = settings.declared.len();
        let (roster, tables) = rack;
        Self {
            kernel,
            shaper,
            tables,
            follower: RosterFollower::new(roster.members()),
            roster,
            servers: vec![None; settings.places],
            types: TypeTable::new(declared, settings.types.len() - declared),
            sees_responses: settings.direct.is_none(),
            watch,
            heard: vec![0; settings.places],
            generation: 0,
            history: SentHistory::new(settings.places, ANSWER),
            expired: 0,
            lost: 0,
            servers_changed: false,
            next_reach: Instant::now() + NEIGHBOURS_EVERY,
            devices: AttachedDevices::default(),
        }
    }

    /// Begins where an earlier process left off, with the ways to all servers.
    pub(super) fn begin(
        &mut self,
        reach: &Reach,
        left: Option<&LeftTables>,
    ) -> Result<(), ReachError> {
        self.know(left)?;
        self.find_servers(reach, left)
    }

    /// Goes on with the types of the tables that an earlier process left, and with the servers that it missed.
    fn know(&mut self, left: Option<&LeftTables>) -> Result<(), SwitchError> {
        let Some(left) = left else {
            return Ok(());
        };
        let registers = self.kernel.switch().registers()?;
        self.watch.begin_at(&registers);
        for &byte in &left.type_bytes {
            self.types.class(byte);
        }
        let now_ns = Clock::global().now_ns();
        let members = self.roster.members();
        for (place, of_group) in (0..).zip(&left.layout.cores) {
            let had_none = of_group.iter().all(|&cores| cores == 0);
            let was_there = left.servers[usize::from(place)].is_some();
            let serves = members[usize::from(place)].is_some();
            if had_none && was_there && serves {
                self.watch.was_silent(ServerId(place), now_ns);
            }
        }
        Ok(())
    }

    /// Finds the next hop of each server. One that an earlier process found may be away for now.
    fn find_servers(&mut self, reach: &Reach, left: Option<&LeftTables>) -> Result<(), ReachError> {
        let found = left.map_or(&[][..], |left| &left.servers);
        for (place, member) in self.roster.members().into_iter().enumerate() {
            let Some(member) = member else {
                continue;
            };
            let found = found.get(place).copied().flatten();
            self.servers[place] = Some(match found {
                Some(found) => known_again(found),
                None => reach.to(member.address, ASK_FOR)?,
            });
        }
        Ok(())
    }

    /// From here on the program gets packets.
    pub(super) fn attach(&mut self, interfaces: &Sourced<Vec<String>>) -> Result<()> {
        for interface in &interfaces.value {
            self.kernel.attach(interface, interfaces)?;
            self.devices.add(interface);
        }
        let takes = self.devices.check_takes();
        takes.map_err(|error| interfaces.refused(error))?;
        self.kernel.attached(&self.devices.numbers())?;
        let names = interfaces.value.join(", ");
        eprintln!("the switch is in the kernel, on {names}");
        Ok(())
    }

    /// Runs until `stopped`, and returns all counts. An error stops the control plane too. A panic leaves the switch in the kernel to the next process.
    pub(super) fn run(mut self, stopped: &AtomicBool) -> Result<Value> {
        let run = self.run_until(stopped);
        stopped.store(true, Ordering::Release);
        let counts = self.kernel.switch().registers().map(|all| all.counts);
        self.kernel.end();
        run?;
        let counts = counts?;
        Ok(all_counts(&self.common(&counts), Some(&of_kernel(&counts))))
    }

    fn run_until(&mut self, stopped: &AtomicBool) -> Result<()> {
        while !stopped.load(Ordering::Acquire) {
            thread::sleep(ROUND);
            self.round()?;
            if Instant::now() >= self.next_reach {
                self.next_reach = Instant::now() + NEIGHBOURS_EVERY;
                self.devices.check()?;
                self.reach_again()?;
                self.kernel.renew_lease()?;
            }
        }
        Ok(())
    }

    /// Passes registers to the control plane, and new tables to the program.
    pub(super) fn round(&mut self) -> Result<(), RelayError> {
        let registers = self.kernel.switch().registers()?;
        let now_ns = Clock::global().now_ns();
        self.follow_roster(&registers);
        let watch = &mut self.watch;
        self.tables.hear_agents(&mut self.heard, |server, cores| {
            watch.agent_said(now_ns, server, cores);
        });
        watch.look(now_ns, &registers);
        self.history.note(now_ns, &registers.servers);
        let forgotten = self.history.forgotten(&registers.servers);
        self.expired = self.expired.max(registers.counts.expired + forgotten);
        self.tables.set_readings(&registers.readings());
        self.tables.set_overflowed(registers.counts.overflowed);
        self.tables.set_report(self.report(&registers));
        let newest = self.tables.install(self.generation, &mut self.shaper);
        let has_new_types = self.has_new_types(&registers);
        if newest != self.generation || has_new_types || self.servers_changed {
            self.generation = newest;
            self.publish()?;
        }
        self.tables.note_left(|server| self.shaper.may_send(server));
        Ok(())
    }

    /// Carries out the orders about servers.
    fn follow_roster(&mut self, registers: &Registers) {
        let mut plane = KernelMembers {
            watch: &mut self.watch,
            servers: &mut self.servers,
            shaper: &self.shaper,
            unanswered: self.history.unanswered(&registers.servers),
            changed: false,
            lost: 0,
        };
        self.follower.follow(&self.roster, &mut plane);
        self.servers_changed |= plane.changed;
        self.lost += plane.lost;
    }

    /// Adds the new type bytes while there is room, and returns whether there were any.
    fn has_new_types(&mut self, registers: &Registers) -> bool {
        let known = self.types.bytes().len();
        for &byte in &registers.unknown_bytes {
            self.types.class(byte);
        }
        self.types.bytes().len() > known
    }

    fn publish(&mut self) -> Result<(), RelayError> {
        let types = self.types.unknown().index();
        let tables = tables_of_places(&self.shaper, types, self.types.bytes(), &self.servers)?;
        let control = self.tables.last();
        let demand = control
            .as_ref()
            .map_or(&[][..], |control| control.demand().types());
        self.kernel
            .switch_mut()
            .publish(&tables.for_demand(demand))?;
        self.servers_changed = false;
        Ok(())
    }

    /// Updates the servers' next hops, since Ethernet addresses and interfaces can change. An unreachable server keeps its old one.
    fn reach_again(&mut self) -> Result<(), RelayError> {
        let again = self.servers.iter();
        let again = again.map(|server| server.map(known_again)).collect();
        if self.servers != again {
            self.servers = again;
            self.publish()?;
        }
        Ok(())
    }

    fn report(&self, registers: &Registers) -> SwitchReport {
        let counts = &registers.counts;
        let settled = counts.answered + counts.shed + counts.expired + counts.other_family;
        let begun = counts.requests.saturating_sub(settled);
        // The program forgets a request when it takes its slot again, which may be never.
        let unanswered = self.history.unanswered(&registers.servers);
        let at_servers = unanswered.iter().sum();
        let sees = |count: u64| if self.sees_responses { count } else { 0 };
        SwitchReport {
            counts: self.common(counts),
            kernel: Some(of_kernel(counts)),
            lost: None,
            under_way: sees(begun.min(at_servers)) as usize,
            unanswered: unanswered.iter().map(|&count| sees(count) as u32).collect(),
            cores: self.watch.cores(),
            type_bytes: self.types.bytes().to_vec(),
            // The program does not keep when a request arrived.
            slo: None,
        }
    }

    /// The counts that both data planes have.
    fn common(&self, counts: &XdpCounts) -> PacketCounts {
        let mut common = PacketCounts {
            requests: counts.requests,
            answered: counts.answered,
            cloned: counts.cloned,
            filtered: counts.filtered,
            copies_refused: counts.copies_refused,
            bounced: counts.bounced,
            shed: counts.shed,
            expired: self.expired.max(counts.expired),
            lost: self.lost,
            truncated: counts.truncated,
            too_long: counts.too_long,
            unexpected: counts.unexpected,
            spoofed: counts.spoofed,
            wrong_side: counts.wrong_side,
            unknown_type: counts.unknown_type,
            ..PacketCounts::default()
        };
        self.watch.add_to(&mut common);
        common
    }
}

/// The counts that the switch in user space has not.
fn of_kernel(counts: &XdpCounts) -> KernelCounts {
    KernelCounts {
        fragment: counts.fragment,
        options: counts.options,
        other_family: counts.other_family,
    }
}

/// The servers of the switch in the kernel at one moment.
struct KernelMembers<'a> {
    watch: &'a mut ServerWatch,
    servers: &'a mut [Option<Neighbour>],
    shaper: &'a Shaper,
    /// By place.
    unanswered: Vec<u64>,
    changed: bool,
    lost: u64,
}

impl RosterPlane for KernelMembers<'_> {
    /// The order's own check has made the kernel ask for the server's address.
    fn join(&mut self, server: ServerId, member: &RackMember) -> bool {
        let Ok(neighbour) = neighbour_of(member.address, Duration::ZERO) else {
            return false;
        };
        self.servers[server.index()] = Some(neighbour);
        self.watch.join(server, member.address, member.cores);
        self.changed = true;
        true
    }

    fn drain(&mut self, server: ServerId) {
        self.watch.drain(server);
    }

    fn is_drained(&self, server: ServerId) -> bool {
        self.unanswered[server.index()] == 0 && !self.shaper.may_send(server)
    }

    fn remove(&mut self, server: ServerId) -> u64 {
        self.watch.vacate(server);
        self.servers[server.index()] = None;
        self.changed = true;
        let lost = self.unanswered[server.index()];
        self.lost += lost;
        lost
    }
}
