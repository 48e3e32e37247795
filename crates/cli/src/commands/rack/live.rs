//! Runs the switch and its control plane until a signal.

use super::device;
use super::routes;
use super::settings::{RackListen, RackSettings};
use super::start::{
    announce, answer, begin_control, control_failed, forward_beside, hear_agents, score, tell,
};
use super::status::{ObservedPlane, RackSubject, counts};
use super::xdp;
use crate::commands::{control_socket, http};
use crate::error::explain;
use anyhow::{Context, Result};
use headway_machine::Clock;
use headway_ops::place::SocketKind;
use headway_policy::rack::systems::{self, RackSystem, RackVisit};
use headway_policy::rack::{ControlPlane, Liveness, LivenessRules, RackShape, Switch, Turns};
use headway_rack::slo::SloWatch;
use headway_rack::{
    PacketPort, PortSwitch, ScoringTask, ServerInterfaces, SwitchLimits, SwitchStopper,
    SwitchTables, UdpPort, keep_control,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Requests that a policy with a queue in the switch may hold: 2 MB of bodies.
const HELD: usize = 1024;

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(settings: &RackSettings) -> Result<ExitCode> {
    let shape = RackShape {
        cores: settings.cores.clone(),
        types: settings.types.clone(),
        room: HELD,
        seed: settings.seed,
    };
    let policy = &settings.policy;
    systems::with(&policy.value, &shape, Starter { settings })
        .map_err(|error| policy.refused(explain(&error)))?
}

struct Starter<'a> {
    settings: &'a RackSettings,
}

impl RackVisit for Starter<'_> {
    type Output = Result<ExitCode>;

    fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
        match &self.settings.xdp {
            Some(interfaces) => xdp::serve(self.settings, interfaces, system),
            None => match &self.settings.listen.value {
                RackListen::Udp(at) => {
                    let port = UdpPort::bind(*at);
                    let port = port.map_err(|error| self.settings.listen.refused(error))?;
                    let interfaces = routes::follow(self.settings)?;
                    serve(self.settings, system, port, interfaces)
                }
                RackListen::Device(place) => {
                    let port = device::open(self.settings, place)?;
                    // Servers and clients are behind the same device.
                    let interfaces = ServerInterfaces::unknown(self.settings.servers.len());
                    serve(self.settings, system, port, Arc::new(interfaces))
                }
            },
        }
    }
}

fn serve<S: Switch + Send + 'static>(
    settings: &RackSettings,
    mut system: RackSystem<S>,
    port: impl PacketPort + Send,
    interfaces: Arc<ServerInterfaces>,
) -> Result<ExitCode> {
    let declared = settings.declared.len();
    let limits = SwitchLimits {
        undeclared: settings.types.len() - declared,
        held: HELD,
        ..SwitchLimits::new(declared)
    };
    let servers = settings.servers.len();
    let tables = SwitchTables::new(settings.types.len()).with_agents(servers);
    let tables = Arc::new(tables);
    let shaper = system.switch.shaper();
    let turns = shaper.map_or(Turns::Even, |shaper| shaper.turns());
    let (name, params) = (system.name, system.params);
    let clock = Clock::global();
    let mut switch = PortSwitch::on(
        port,
        system.switch,
        settings.addresses.clone(),
        limits,
        clock,
    )
    .hearing_servers_by(interfaces);
    let at = switch.local_addr();
    let socket = control_socket::bind(&settings.ctl, SocketKind::Rack, at.port())?;
    let agents = hear_agents(settings, at, system.bouncing, &tables)?;
    let metrics = settings.metrics.as_ref();
    let metrics = metrics.map(http::bind).transpose()?;
    switch = watching(switch, settings)?;
    let control = system.control.take().map(|control| {
        let adapting = system.adapting;
        begin_control(control, turns, settings.slo.as_ref(), &tables).adapting(adapting)
    });
    let observed = Arc::new(ObservedPlane::default());
    let observe = |control: &ControlPlane| {
        observed.set(control);
        if let Some(agents) = &agents {
            agents.follow(control);
        }
    };
    if let Some(control) = &control {
        observe(control.control());
    }
    let mut switch = switch.with_tables(Arc::clone(&tables));
    let stopped = Arc::new(AtomicBool::new(false));
    heed_signals(switch.stopper(&stopped))?;
    let subject = RackSubject::new(settings, at, name, &params, &tables, &observed);
    let subject = subject.with_agents(agents.clone());
    let subject = Arc::new(subject);
    let _doors = answer(socket, metrics, &subject)?;
    announce(settings, at, &subject)?;
    let forward = || {
        switch.run(&stopped);
        *switch.switch().counts()
    };
    let counted = forward_beside("hw-switch", forward, agents.as_deref(), &stopped, || {
        let score = |task: &ScoringTask| score(turns, settings.slo.as_ref(), task);
        if let Some(control) = control {
            keep_control(control, clock, &stopped, score, observe, control_failed);
        }
    })?;
    tell(settings, &counts(&counted))?;
    Ok(ExitCode::SUCCESS)
}

/// Has the switch watch its servers and the SLO, where the settings ask for it.
fn watching<S: Switch, P: PacketPort>(
    mut switch: PortSwitch<S, P>,
    settings: &RackSettings,
) -> Result<PortSwitch<S, P>> {
    if let Some(silent_ns) = settings.silent_ns {
        let rules = LivenessRules {
            silent_ns,
            ..LivenessRules::default()
        };
        switch = switch.watching(Liveness::new(&settings.cores, rules));
    }
    if let Some(slo) = &settings.slo {
        // The settings refused what cannot be watched.
        let watch = SloWatch::new(&slo.slo, settings.types.len() + 1)?;
        switch = switch.watching_slo(watch);
    }
    Ok(switch)
}

/// SIGTERM and SIGINT end the switch after its current batch. A second signal has no further effect.
fn heed_signals(stopper: SwitchStopper) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot watch for signals")?;
    thread::Builder::new()
        .name("hw-signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                stopper.stop();
            }
        })
        .context("cannot start the signal thread")?;
    Ok(())
}
