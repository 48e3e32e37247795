//! The thread between the program and the control plane: registers one way, tables the other, and the servers as they come and go.

use super::settings::RackSettings;
use super::status::all_counts;
use super::xdp_devices::AttachedDevices;
use super::xdp_expiry::{ANSWER, SentHistory};
use super::xdp_left::KernelSwitch;
use super::xdp_members::{KernelMembers, ProgramTables, RelayError, cores_of};
use super::xdp_reach::{ASK_FOR, NEIGHBOURS_EVERY, Reach, ReachError, known_again};
use super::xdp_servers::ServerWatch;
use crate::commands::serve::config::Sourced;
use anyhow::Result;
use headway_machine::Clock;
use headway_policy::rack::{ServerId, Shaper, Switch as _};
use headway_rack::{
    KernelCounts, PacketCounts, RackRoster, RosterFollower, SwitchReport, SwitchTables, TypeTable,
};
use headway_xdp::{LeftTables, Registers, SwitchError, XdpCounts};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two readings of the program's registers: a tenth of the control plane's interval, which bounds the age of a reading.
const ROUND: Duration = Duration::from_millis(1);

/// Transfers registers and tables between the program and the control plane.
pub(super) struct Relay {
    program: ProgramTables,
    roster: Arc<RackRoster>,
    follower: RosterFollower,
    /// False if servers answer clients directly.
    sees_responses: bool,
    watch: ServerWatch,
    /// Number of reports of each server's agent.
    heard: Vec<u64>,
    generation: u64,
    history: SentHistory,
    /// Copies that are no longer awaited. A late answer may still come, and takes none back.
    expired: u64,
    next_reach: Instant,
    devices: AttachedDevices,
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
        let members = roster.members();
        let member_cores = members.iter().map(|member| cores_of(member.as_ref()));
        Self {
            program: ProgramTables {
                kernel,
                shaper,
                tables,
                servers: vec![None; settings.places],
                gone_since: vec![0; settings.places],
                member_cores: member_cores.collect(),
                types: TypeTable::new(declared, settings.types.len() - declared),
                are_stale: true,
            },
            follower: RosterFollower::new(members),
            roster,
            sees_responses: settings.direct.is_none(),
            watch,
            heard: vec![0; settings.places],
            generation: 0,
            history: SentHistory::new(settings.places, ANSWER),
            expired: 0,
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
        self.find_servers(reach, left)?;
        // So the first round publishes.
        self.program.kernel.switch().settle();
        Ok(())
    }

    /// Goes on with the types of the tables that an earlier process left, and with the servers that it missed.
    fn know(&mut self, left: Option<&LeftTables>) -> Result<(), SwitchError> {
        let Some(left) = left else {
            return Ok(());
        };
        let registers = self.program.kernel.switch().registers()?;
        self.watch.begin_at(&registers);
        for &byte in &left.type_bytes {
            self.program.types.class(byte);
        }
        let now_ns = Clock::global().now_ns();
        let members = self.roster.members();
        for (place, of_group) in (0..).zip(&left.layout.cores) {
            let had_none = of_group.iter().all(|&cores| cores == 0);
            let was_there = left.servers[usize::from(place)].is_some();
            let serves = cores_of(members[usize::from(place)].as_ref()) > 0;
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
            self.program.servers[place] = Some(match found {
                Some(found) => known_again(found),
                None => reach.to(member.address, ASK_FOR)?,
            });
        }
        Ok(())
    }

    /// From here on the program gets packets.
    pub(super) fn attach(&mut self, interfaces: &Sourced<Vec<String>>) -> Result<()> {
        for interface in &interfaces.value {
            let tags = self.program.kernel.attach(interface, interfaces)?;
            self.devices.add(interface, tags);
        }
        let takes = self.devices.check_packets();
        takes.map_err(|error| interfaces.refused(error))?;
        self.program.kernel.attached(&self.devices.numbers())?;
        let names = interfaces.value.join(", ");
        say!("the switch is in the kernel, on {names}");
        Ok(())
    }

    /// Runs until `stopped`, and returns all counts. An error stops the control plane too. A panic leaves the switch in the kernel to the next process.
    pub(super) fn run(mut self, stopped: &AtomicBool) -> Result<Value> {
        let run = self.run_until(stopped);
        stopped.store(true, Ordering::Release);
        let counts = self
            .program
            .kernel
            .switch()
            .registers()
            .map(|all| all.counts);
        self.program.kernel.end();
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
                self.program.kernel.switch_mut().renew_addresses()?;
                self.reach_again();
            }
            self.program.kernel.keep_lease()?;
        }
        Ok(())
    }

    /// Passes registers to the control plane, and new tables to the program.
    pub(super) fn round(&mut self) -> Result<(), RelayError> {
        let registers = self.program.kernel.switch().registers()?;
        let now_ns = Clock::global().now_ns();
        self.follow_roster(&registers)?;
        let watch = &mut self.watch;
        self.program
            .tables
            .hear_agents(&mut self.heard, |server, cores| {
                watch.agent_said(now_ns, server, cores);
            });
        watch.look(now_ns, &registers);
        self.devices.tell_of_tags(registers.counts.hidden_tag);
        self.history.note(now_ns, &registers.servers);
        let forgotten = self.history.forgotten(&registers.servers);
        self.expired = self.expired.max(registers.counts.expired + forgotten);
        self.program.tables.set_readings(&registers.readings());
        self.program
            .tables
            .set_overflowed(registers.counts.overflowed);
        self.program.tables.set_report(self.report(&registers));
        let newest = self
            .program
            .tables
            .install(self.generation, &mut self.program.shaper);
        let has_new_types = self.has_new_types(&registers);
        self.program.are_stale |= newest != self.generation || has_new_types;
        self.generation = newest;
        self.program.publish()?;
        if !self.program.are_stale {
            self.program
                .tables
                .note_left(|server| self.program.shaper.may_send(server));
        }
        Ok(())
    }

    /// Carries out the orders about servers.
    fn follow_roster(&mut self, registers: &Registers) -> Result<(), RelayError> {
        let mut plane = KernelMembers {
            watch: &mut self.watch,
            program: &mut self.program,
            unanswered: self.history.unanswered(&registers.servers),
            failed: None,
        };
        self.follower.follow(&self.roster, &mut plane);
        plane.failed.map_or(Ok(()), Err)
    }

    /// Adds the new type bytes while there is room, and returns whether there were any.
    fn has_new_types(&mut self, registers: &Registers) -> bool {
        let known = self.program.types.bytes().len();
        for &byte in &registers.unknown_bytes {
            self.program.types.class(byte);
        }
        self.program.types.bytes().len() > known
    }

    /// Updates the servers' next hops, since Ethernet addresses and interfaces can change. An unreachable server keeps its old one.
    fn reach_again(&mut self) {
        let again = self.program.servers.iter();
        let again = again.map(|server| server.map(known_again)).collect();
        self.program.are_stale |= self.program.servers != again;
        self.program.servers = again;
    }

    fn report(&self, registers: &Registers) -> SwitchReport {
        let counts = &registers.counts;
        let unreachable = counts.other_family + counts.no_server;
        let settled = counts.answered + counts.shed + counts.expired + counts.lost + unreachable;
        let begun = counts.requests.saturating_sub(settled);
        // The program forgets a request when it takes its slot again, which may be never.
        let unanswered = self.history.unanswered(&registers.servers);
        let at_servers = unanswered.iter().sum();
        let sees = |count: u64| if self.sees_responses { count } else { 0 };
        let awaited: Vec<u32> = unanswered.iter().map(|&count| sees(count) as u32).collect();
        SwitchReport {
            counts: self.common(counts),
            kernel: Some(of_kernel(counts)),
            lost: None,
            under_way: sees(begun.min(at_servers)) as usize,
            // The program writes off nothing of a silent server.
            unanswered: awaited.clone(),
            awaited,
            cores: self.watch.cores(),
            type_bytes: self.program.types.bytes().to_vec(),
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
            lost: counts.lost,
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
        no_server: counts.no_server,
        hidden_tag: counts.hidden_tag,
    }
}
