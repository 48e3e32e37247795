//! The switch in the kernel, with the same control plane. It reads the XDP program's registers and writes its tables.

use super::listen::RackListen;
use super::orders::ServerOrders;
use super::settings::RackSettings;
use super::start::{
    ReloadWishes, announce, answer, begin_control, control_failed, forward_beside, hear_agents,
    heed_signals, liveness, reload_on, score, tell,
};
use super::status::{ObservedPlane, RackSubject};
use super::xdp_left::{self, KernelSwitch};
use super::xdp_reach::Reach;
use super::xdp_relay::Relay;
use super::xdp_servers::ServerWatch;
use crate::commands::serve::config::Sourced;
use crate::commands::{control_socket, http};
use anyhow::{Context, Result};
use headway_machine::Clock;
use headway_ops::place::SocketKind;
use headway_policy::rack::systems::RackSystem;
use headway_policy::rack::{Cloning, ControlPlane, Shaper, Switch};
use headway_rack::{RackRoster, ScoringTask, SwitchTables, keep_control};
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs until SIGTERM or SIGINT. Attaches the program to the interfaces last, when all other parts are ready.
pub(super) fn serve<S: Switch>(
    settings: &RackSettings,
    interfaces: &Sourced<Vec<String>>,
    mut system: RackSystem<S>,
) -> Result<ExitCode> {
    let (shaper, mut control) = with_tables(settings, &mut system)?;
    let turns = shaper.turns();
    let at = own_address(settings)?;
    if let Some(direct) = &settings.direct {
        check_direct(settings, direct, &shaper)?;
    }
    let port = own_port(settings, at)?;
    let socket = control_socket::bind(&settings.ctl, SocketKind::Rack, at.port())?;
    let metrics = settings.metrics.as_ref().map(http::bind).transpose()?;
    let reach = Arc::new(Reach::of(interfaces, at)?);
    let (stopped, wishes) = stop_on_signals()?;
    let mut kernel = KernelSwitch::load(settings, at, &shaper, interfaces)?;
    let left = kernel.left(settings)?;
    let roster = Arc::new(xdp_left::roster(settings, left.as_ref())?);
    xdp_left::place_servers(&mut control, &roster);
    let tables = SwitchTables::new(settings.types.len()).with_agents(settings.places);
    let tables = Arc::new(tables);
    let reaches = Reach::check(&reach);
    let orders = ServerOrders::new(settings, at, (&roster, &tables), reaches);
    let agents = hear_agents(settings, at, system.bouncing, &orders)?;
    let slo = settings.slo.as_ref();
    let control = xdp_left::take_up(control, left.as_ref(), kernel.switch(), &tables)?;
    let control = control.unwrap_or_else(|fresh| begin_control(*fresh, turns, slo, &tables));
    let observed = Arc::new(ObservedPlane::new(&tables));
    let observe = |control: &ControlPlane| {
        observed.set(control);
        if let Some(agents) = &agents {
            agents.follow(control);
        }
    };
    observe(control.control());
    let watch = watch(settings, &port, &roster, kernel.switch().question_index())?;
    let mut relay = Relay::new(
        kernel,
        shaper,
        settings,
        (roster, Arc::clone(&tables)),
        watch,
    );
    let begun = relay.begin(&reach, left.as_ref());
    begun.map_err(|why| reach.refused(interfaces, why))?;
    relay.round().map_err(|error| interfaces.refused(error))?;
    reload_on(wishes, &orders)?;
    let policy = (system.name, &system.params);
    let subject = RackSubject::new(settings, at, policy, &tables, &observed, orders);
    let subject = Arc::new(subject.with_agents(agents.clone()));
    let _doors = answer(socket, metrics, &subject)?;
    relay.attach(interfaces)?;
    announce(settings, at, &subject)?;
    let relaying = || relay.run(&stopped);
    let relayed = forward_beside("hw-relay", relaying, agents.as_deref(), &stopped, || {
        let score = |task: &ScoringTask| score(turns, settings.slo.as_ref(), task);
        keep_control(
            control.adapting(system.adapting),
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

/// The flag that signals to stop set. It is there before anything is pinned, so that the end of the start removes the pins.
fn stop_on_signals() -> Result<(Arc<AtomicBool>, ReloadWishes)> {
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    let wishes = heed_signals(move || stop.store(true, Ordering::Release))?;
    Ok((stopped, wishes))
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

/// Makes the watch over all places, which sends its questions from `port`.
fn watch(
    settings: &RackSettings,
    port: &UdpSocket,
    roster: &RackRoster,
    question_index: u32,
) -> Result<ServerWatch> {
    let port = port.try_clone().context("cannot share the switch's port")?;
    let members = roster.members();
    let servers = members
        .iter()
        .map(|member| member.map(|member| member.address));
    let liveness = liveness(settings, roster);
    let watch = ServerWatch::new(liveness, port, servers.collect(), question_index);
    Ok(watch.seeing_responses(settings.direct.is_none()))
}
