//! The switch in the kernel, with the same control plane. It reads the XDP program's registers and writes its tables.

use super::settings::{RackListen, RackSettings};
use super::start::{
    announce, answer, begin_control, control_failed, forward_beside, hear_agents, score, tell,
};
use super::status::{ObservedPlane, RackSubject, all_counts};
use super::xdp_devices::{AttachedDevices, some_lack_checksums};
use super::xdp_expiry::SentHistory;
use super::xdp_servers::ServerWatch;
use crate::commands::serve::config::Sourced;
use crate::commands::{control_socket, http};
use crate::error::usage;
use anyhow::{Context, Result};
use headway_machine::Clock;
use headway_ops::place::SocketKind;
use headway_policy::rack::systems::RackSystem;
use headway_policy::rack::{Cloning, ControlPlane, Liveness, LivenessRules, Shaper, Switch};
use headway_rack::{
    KernelCounts, PacketCounts, ScoringTask, SwitchReport, SwitchTables, TypeTable, keep_control,
};
use headway_xdp::{
    Mode, Neighbour, NeighbourError, Registers, SwitchError, XdpCounts, XdpMode, XdpSwitch,
    XdpSwitchConfig, compile, neighbour_of, tables_of,
};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two readings of the program's registers: a tenth of the control plane's interval, which bounds the age of a reading.
const ROUND: Duration = Duration::from_millis(1);
/// Time between two updates of the servers' next hops.
pub(super) const NEIGHBOURS_EVERY: Duration = Duration::from_secs(1);
/// Time limit for the Ethernet address of a server's next hop.
pub(super) const ASK_FOR: Duration = Duration::from_secs(3);
/// Time without an answer after which the switch forgets a request, as in user space.
const ANSWER: Duration = Duration::from_secs(5);

/// Runs until SIGTERM or SIGINT. Attaches the program to the interfaces last, when all other parts are ready.
pub(super) fn serve<S: Switch>(
    settings: &RackSettings,
    interfaces: &Sourced<Vec<String>>,
    mut system: RackSystem<S>,
) -> Result<ExitCode> {
    let (shaper, control) = with_tables(settings, &mut system)?;
    let turns = shaper.turns();
    let at = own_address(settings)?;
    if let Some(direct) = &settings.direct {
        check_direct(settings, direct, &shaper)?;
    }
    let port = own_port(settings, at)?;
    let socket = control_socket::bind(&settings.ctl, SocketKind::Rack, at.port())?;
    let metrics = settings.metrics.as_ref();
    let metrics = metrics.map(http::bind).transpose()?;
    let servers = reach(settings, at, interfaces)?;
    let switch = load(settings, at, &shaper, interfaces)?;
    let tables = SwitchTables::new(settings.types.len()).with_agents(servers.len());
    let tables = Arc::new(tables);
    let agents = hear_agents(settings, at, system.bouncing, &tables)?;
    let control =
        begin_control(control, turns, settings.slo.as_ref(), &tables).adapting(system.adapting);
    let observed = Arc::new(ObservedPlane::default());
    let observe = |control: &ControlPlane| {
        observed.set(control);
        if let Some(agents) = &agents {
            agents.follow(control);
        }
    };
    observe(control.control());
    let watch = watch(settings, &port, switch.question_index())?;
    let mut relay = Relay::new(
        switch,
        shaper,
        settings,
        (servers, Arc::clone(&tables)),
        watch,
    );
    relay.round().map_err(|error| interfaces.refused(error))?;
    let stopped = stop_flag()?;
    let subject = RackSubject::new(
        settings,
        at,
        system.name,
        &system.params,
        &tables,
        &observed,
    );
    let subject = Arc::new(subject.with_agents(agents.clone()));
    let _doors = answer(socket, metrics, &subject)?;
    relay.attach(interfaces)?;
    announce(settings, at, &subject)?;
    let relaying = || relay.run(&stopped);
    let relayed = forward_beside("hw-relay", relaying, agents.as_deref(), &stopped, || {
        let score = |task: &ScoringTask| score(turns, settings.slo.as_ref(), task);
        keep_control(
            control,
            Clock::global(),
            &stopped,
            score,
            observe,
            control_failed,
        );
    })?;
    tell(settings, &relayed?)?;
    Ok(ExitCode::SUCCESS)
}

/// The tables of a policy that has them, and what makes them.
fn with_tables<S: Switch>(
    settings: &RackSettings,
    system: &mut RackSystem<S>,
) -> Result<(Shaper, ControlPlane)> {
    let (Some(shaper), Some(control)) = (system.switch.shaper(), system.control.take()) else {
        let why = format!(
            "'{}' has no tables for an XDP program: choose pallas or pallas-paper, or leave --xdp out",
            system.name
        );
        return Err(settings.policy.refused(why));
    };
    Ok((shaper.clone(), control))
}

/// The switch's own socket, which keeps other programs off the port, and keeps the kernel from answering with ICMP "port unreachable".
fn own_port(settings: &RackSettings, at: SocketAddr) -> Result<UdpSocket> {
    let port = UdpSocket::bind(at).map_err(|error| {
        let why =
            format!("cannot listen at {at}: {error}; name an address of this machine and a port that is free");
        settings.listen.refused(why)
    })?;
    port.set_nonblocking(true)
        .context("cannot use the switch's port without waiting")?;
    Ok(port)
}

/// Compiles the program and loads it into the kernel.
fn load(
    settings: &RackSettings,
    at: SocketAddr,
    shaper: &Shaper,
    interfaces: &Sourced<Vec<String>>,
) -> Result<XdpSwitch> {
    let objects = compile().map_err(|error| interfaces.refused(error))?;
    let switch = XdpSwitch::load(&objects.rack, &config(settings, at, shaper, interfaces));
    switch.map_err(|error| interfaces.refused(error))
}

/// A flag that SIGTERM and SIGINT set.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))
            .context("cannot watch for signals")?;
    }
    Ok(stopped)
}

/// The destination address of packets to the switch.
fn own_address(settings: &RackSettings) -> Result<SocketAddr> {
    let at = match &settings.listen.value {
        RackListen::Udp(at) => *at,
        RackListen::Device(device) => {
            let why = format!(
                "{device} is for the switch in user space: with --xdp name this machine's address and a port, such as 10.0.0.1:7100, or leave --xdp out"
            );
            return Err(settings.listen.refused(why));
        }
    };
    if at.ip().is_unspecified() || at.ip().is_loopback() || at.port() == 0 {
        let why = format!(
            "{at} is not what packets from other machines bear: with --xdp name this machine's address and a port, such as 10.0.0.1:7100"
        );
        return Err(settings.listen.refused(why));
    }
    Ok(at)
}

/// Checks that the rack works without the information that a switch gets from responses.
fn check_direct(settings: &RackSettings, direct: &Sourced<()>, shaper: &Shaper) -> Result<()> {
    if shaper.cloning() != Cloning::Off {
        let why = "this policy clones, and of two responses that do not pass the switch the client would get both: add clone=off";
        return Err(settings.policy.refused(why));
    }
    let why = if settings.declared.is_empty() {
        "a switch that sees no response learns no execution time: declare the types by --workload NAME|FILE"
    } else if settings.silent_ns.is_some() && settings.agents.is_none() {
        "a switch that sees no response hears of its servers from agents only: add --agent-key FILE, or --silence 0ms"
    } else {
        return Ok(());
    };
    Err(direct.refused(why))
}

fn config(
    settings: &RackSettings,
    at: SocketAddr,
    shaper: &Shaper,
    interfaces: &Sourced<Vec<String>>,
) -> XdpSwitchConfig {
    let (own_ip4, own_ip6) = match at.ip() {
        IpAddr::V4(ip) => (Some(ip), None),
        IpAddr::V6(ip) => (None, Some(ip)),
    };
    XdpSwitchConfig {
        own_ip4,
        own_ip6,
        port: at.port(),
        types: settings.types.len() as u16,
        mode: if settings.direct.is_some() {
            Mode::Direct
        } else {
            Mode::Nat
        },
        cloning: shaper.cloning(),
        overflows: shaper.loads().is_some(),
        unfinished_checksums: some_lack_checksums(&interfaces.value),
        answer: ANSWER,
    }
}

/// The next hop of each server, which must be behind one of the interfaces, since responses arrive there.
fn reach(
    settings: &RackSettings,
    own: SocketAddr,
    interfaces: &Sourced<Vec<String>>,
) -> Result<Vec<Neighbour>> {
    let indices = interfaces.value.iter().map(|name| {
        nix::net::if_::if_nametoindex(name.as_str()).map_err(|_| {
            let why = format!("there is no interface {name}: `ip link` lists those there are");
            interfaces.refused(why)
        })
    });
    let indices: Vec<u32> = indices.collect::<Result<_>>()?;
    let reached = settings.servers.iter().map(|&server| {
        if server.is_ipv4() != own.is_ipv4() {
            let why = format!(
                "{server} is of another family than the switch's address {own}: in the kernel both are IPv4 or both IPv6"
            );
            return Err(usage("--server", why));
        }
        let neighbour = neighbour_of(server, ASK_FOR).map_err(|error| usage("--server", error))?;
        if !indices.contains(&neighbour.ifindex) {
            let name = interface_name(neighbour.ifindex);
            let why = format!("{server} is reached by {name}: name that interface too");
            return Err(interfaces.refused(why));
        }
        Ok(neighbour)
    });
    reached.collect()
}

/// The name of an interface, or its number if it is gone.
pub(super) fn interface_name(ifindex: u32) -> String {
    let name = nix::net::if_::if_indextoname(ifindex);
    name.map_or_else(
        |_| ifindex.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Transfers registers and tables between the program and the control plane.
struct Relay {
    switch: XdpSwitch,
    /// A copy of the control plane's tables, from which the relay makes the program's.
    shaper: Shaper,
    tables: Arc<SwitchTables>,
    servers: Vec<Neighbour>,
    types: TypeTable,
    /// False if servers answer clients directly.
    sees_responses: bool,
    /// None with `--silence 0`.
    watch: Option<ServerWatch>,
    /// Number of reports of each server's agent.
    heard: Vec<u64>,
    generation: u64,
    history: SentHistory,
    /// Copies that are no longer awaited. A late answer may still come, and takes none back.
    expired: u64,
    next_reach: Instant,
    devices: AttachedDevices,
}

/// Why the program no longer follows the control plane.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Tables(#[from] headway_policy::rack::StepTablesError),
}

impl Relay {
    /// A relay of `shaper`'s tables to the program. `rack` is the servers' next hops, and what the control plane publishes.
    fn new(
        switch: XdpSwitch,
        shaper: Shaper,
        settings: &RackSettings,
        rack: (Vec<Neighbour>, Arc<SwitchTables>),
        watch: Option<ServerWatch>,
    ) -> Self {
        let declared = settings.declared.len();
        let (servers, tables) = rack;
        Self {
            switch,
            shaper,
            tables,
            servers,
            types: TypeTable::new(declared, settings.types.len() - declared),
            sees_responses: settings.direct.is_none(),
            watch,
            heard: vec![0; settings.servers.len()],
            generation: 0,
            history: SentHistory::new(settings.servers.len(), ANSWER),
            expired: 0,
            next_reach: Instant::now() + NEIGHBOURS_EVERY,
            devices: AttachedDevices::default(),
        }
    }

    /// From here on the program gets packets.
    fn attach(&mut self, interfaces: &Sourced<Vec<String>>) -> Result<()> {
        for interface in &interfaces.value {
            let attached = self.switch.attach(interface, XdpMode::Default);
            attached.map_err(|error| interfaces.refused(error))?;
            self.devices.add(interface);
        }
        let takes = self.devices.check_takes();
        takes.map_err(|error| interfaces.refused(error))?;
        let names = interfaces.value.join(", ");
        eprintln!("the switch is in the kernel, on {names}");
        Ok(())
    }

    /// Runs until `stopped`, and returns all counts. An error stops the control plane too.
    fn run(mut self, stopped: &AtomicBool) -> Result<Value> {
        while !stopped.load(Ordering::Acquire) {
            thread::sleep(ROUND);
            if let Err(error) = self.round() {
                stopped.store(true, Ordering::Release);
                return Err(error.into());
            }
            if Instant::now() >= self.next_reach {
                self.next_reach = Instant::now() + NEIGHBOURS_EVERY;
                self.devices
                    .check()
                    .inspect_err(|_| stopped.store(true, Ordering::Release))?;
                self.reach_again()?;
            }
        }
        let counts = self.switch.registers()?.counts;
        Ok(all_counts(&self.common(&counts), Some(&of_kernel(&counts))))
    }

    /// Passes registers to the control plane, and new tables to the program.
    fn round(&mut self) -> Result<(), RelayError> {
        let registers = self.switch.registers()?;
        let now_ns = Clock::global().now_ns();
        if let Some(watch) = &mut self.watch {
            self.tables.hear_agents(&mut self.heard, |server, cores| {
                watch.agent_said(now_ns, server, cores);
            });
            watch.look(now_ns, &registers);
        }
        self.history.note(now_ns, &registers.servers);
        let forgotten = self.history.forgotten(&registers.servers);
        self.expired = self.expired.max(registers.counts.expired + forgotten);
        self.tables.set_readings(&registers.readings());
        self.tables.set_overflowed(registers.counts.overflowed);
        self.tables.set_report(self.report(&registers));
        let newest = self.tables.install(self.generation, &mut self.shaper);
        if newest != self.generation || self.has_new_types(&registers) {
            self.generation = newest;
            self.publish()?;
        }
        self.tables.note_left(|server| self.shaper.may_send(server));
        Ok(())
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
        let tables = tables_of(&self.shaper, types, self.types.bytes(), &self.servers)?;
        Ok(self.switch.publish(&tables)?)
    }

    /// Updates the servers' next hops, since Ethernet addresses and interfaces can change. An unreachable server keeps its old one.
    fn reach_again(&mut self) -> Result<(), RelayError> {
        let again = self.servers.iter();
        let again = again.map(|server| known_again(*server)).collect();
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
            cores: self.watch.as_ref().map_or(vec![], ServerWatch::cores),
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
            truncated: counts.truncated,
            too_long: counts.too_long,
            unexpected: counts.unexpected,
            spoofed: counts.spoofed,
            wrong_side: counts.wrong_side,
            unknown_type: counts.unknown_type,
            ..PacketCounts::default()
        };
        if let Some(watch) = &self.watch {
            watch.add_to(&mut common);
        }
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

/// Makes the watch of the settings, which sends its questions from `port`; none without `silence`.
fn watch(
    settings: &RackSettings,
    port: &UdpSocket,
    question_index: u32,
) -> Result<Option<ServerWatch>> {
    let Some(silent_ns) = settings.silent_ns else {
        return Ok(None);
    };
    let rules = LivenessRules {
        silent_ns,
        ..LivenessRules::default()
    };
    let liveness = Liveness::new(&settings.cores, rules);
    let port = port.try_clone().context("cannot share the switch's port")?;
    let watch = ServerWatch::new(liveness, port, settings.servers.clone(), question_index);
    Ok(Some(watch.seeing_responses(settings.direct.is_none())))
}

/// The server's current next hop; the old one if the server is unreachable.
pub(super) fn known_again(server: Neighbour) -> Neighbour {
    let again: Result<Neighbour, NeighbourError> = neighbour_of(server.address, Duration::ZERO);
    again.unwrap_or(server)
}
