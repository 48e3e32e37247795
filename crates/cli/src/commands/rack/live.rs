//! Runs the switch and its control plane until a signal.

use super::device;
use super::listen::RackListen;
use super::orders::ServerOrders;
use super::routes;
use super::settings::RackSettings;
use super::start::{
    announce, answer, begin_control, control_failed, forward_beside, hear_agents, heed_signals,
    liveness, reload_on, score, tell,
};
use super::status::{ObservedPlane, RackSubject, counts};
use super::xdp;
use super::xdp_reach::ReachCheck;
use crate::commands::{control_socket, http};
use crate::device_look::DeviceLook;
use crate::error::explain;
use anyhow::Result;
use headway_machine::Clock;
use headway_ops::place::SocketKind;
use headway_policy::rack::systems::{self, RackSystem, RackVisit};
use headway_policy::rack::{ControlPlane, RackShape, Switch, Turns};
use headway_rack::slo::SloWatch;
use headway_rack::{
    LostPackets, PacketPort, PortSwitch, RackRoster, ScoringTask, ServerInterfaces, SwitchLimits,
    SwitchTables, UdpPort, keep_control,
};
use headway_xsk::DeviceWatch;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Requests that a policy with a queue in the switch may hold: 2 MB of bodies.
const HELD: usize = 1024;

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(settings: &RackSettings) -> Result<ExitCode> {
    let named = settings.servers.iter().map(|server| server.cores);
    let mut cores: Vec<_> = named.collect();
    // Places without a server are servers without cores.
    cores.resize(settings.places, 0);
    let shape = RackShape {
        cores,
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
                    let roster = Arc::new(self.settings.roster());
                    let interfaces = routes::follow(&roster)?;
                    let sides = PortSides {
                        roster,
                        reaches: routes::check(),
                        interfaces,
                        device: None,
                    };
                    serve(self.settings, system, port, sides)
                }
                RackListen::Device(place) => {
                    let roster = Arc::new(self.settings.roster());
                    let (port, reaches) = device::open(self.settings, place)?;
                    let device = Some(port.watch());
                    // Servers and clients are behind the same device.
                    let interfaces = ServerInterfaces::unknown(self.settings.places);
                    let sides = PortSides {
                        roster,
                        reaches,
                        interfaces: Arc::new(interfaces),
                        device,
                    };
                    serve(self.settings, system, port, sides)
                }
            },
        }
    }
}

/// The servers of a switch, and the ways that lead to them.
struct PortSides {
    roster: Arc<RackRoster>,
    interfaces: Arc<ServerInterfaces>,
    reaches: ReachCheck,
    /// The device whose packets the switch takes past the kernel.
    device: Option<DeviceWatch>,
}

fn serve<S: Switch + Send + 'static>(
    settings: &RackSettings,
    mut system: RackSystem<S>,
    port: impl PacketPort + Send,
    sides: PortSides,
) -> Result<ExitCode> {
    let limits = limits(settings);
    let PortSides {
        roster,
        interfaces,
        reaches,
        device,
    } = sides;
    let tables = SwitchTables::new(settings.types.len()).with_agents(settings.places);
    let tables = Arc::new(tables);
    let shaper = system.switch.shaper();
    let turns = shaper.map_or(Turns::Even, |shaper| shaper.turns());
    let (name, params) = (system.name, system.params);
    let clock = Clock::global();
    let mut switch = PortSwitch::on(port, system.switch, roster.addresses(), limits, clock)
        .hearing_servers_by(interfaces)
        .with_roster(Arc::clone(&roster));
    let at = switch.local_addr();
    let socket = control_socket::bind(&settings.ctl, SocketKind::Rack, at.port())?;
    let orders = ServerOrders::new(settings, at, (&roster, &tables), reaches);
    let agents = hear_agents(settings, at, system.bouncing, &orders)?;
    let metrics = settings.metrics.as_ref();
    let metrics = metrics.map(http::bind).transpose()?;
    switch = watching(switch, settings, &roster)?;
    let control = system.control.take().map(|control| {
        let adapting = system.adapting;
        begin_control(control, turns, settings.slo.as_ref(), &tables).adapting(adapting)
    });
    let observed = Arc::new(ObservedPlane::new(&tables));
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
    let stopper = switch.stopper(&stopped);
    let on_signal = stopper.clone();
    reload_on(heed_signals(move || on_signal.stop())?, &orders)?;
    let subject = RackSubject::new(settings, at, (name, &params), &tables, &observed, orders);
    let subject = Arc::new(subject.with_agents(agents.clone()));
    let _doors = answer(socket, metrics, &subject)?;
    announce(settings, at, &subject)?;
    let device = DeviceLook::begin(device, move || stopper.stop())?;
    let forward = || {
        switch.run(&stopped);
        (*switch.switch().counts(), switch.lost())
    };
    let (counted, lost) =
        forward_beside("hw-switch", forward, agents.as_deref(), &stopped, || {
            let score = |task: &ScoringTask| score(turns, settings.slo.as_ref(), task);
            if let Some(control) = control {
                keep_control(control, clock, &stopped, score, observe, control_failed);
            }
        })?;
    let told = tell(settings, &with_lost(counts(&counted), lost));
    // Nobody may read the counts; the end has its reason all the same.
    device.map_or(Ok(()), DeviceLook::end)?;
    told?;
    Ok(ExitCode::SUCCESS)
}

/// The counts with what the port lost, as far as it knows.
fn with_lost(mut counts: Value, lost: LostPackets) -> Value {
    counts["unsent"] = lost.unsent.into();
    if let Some(rejected) = lost.rejected {
        counts["rejected"] = rejected.into();
    }
    if let Some(other_source) = lost.other_source {
        counts["other_source"] = other_source.into();
    }
    counts
}

fn limits(settings: &RackSettings) -> SwitchLimits {
    let declared = settings.declared.len();
    SwitchLimits {
        undeclared: settings.types.len() - declared,
        held: HELD,
        ..SwitchLimits::new(declared)
    }
}

/// Has the switch watch its servers and the SLO, where the settings ask for it.
fn watching<S: Switch, P: PacketPort>(
    mut switch: PortSwitch<S, P>,
    settings: &RackSettings,
    roster: &RackRoster,
) -> Result<PortSwitch<S, P>> {
    switch = switch.watching(liveness(settings, roster));
    if let Some(slo) = &settings.slo {
        // The settings refused what cannot be watched.
        let watch = SloWatch::new(&slo.slo, settings.types.len() + 1)?;
        switch = switch.watching_slo(watch);
    }
    Ok(switch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_rack::PacketCounts;

    #[test]
    fn what_the_port_lost_is_among_the_counts_as_far_as_it_knows() {
        let told = |rejected, other_source| {
            let lost = LostPackets {
                unsent: 3,
                rejected,
                other_source,
            };
            with_lost(counts(&PacketCounts::default()), lost)
        };
        let over_udp = told(None, None);
        assert_eq!(over_udp["unsent"], 3);
        assert!(over_udp.get("rejected").is_none(), "{over_udp}");
        assert_eq!(told(Some(2), None)["rejected"], 2);
        assert!(over_udp.get("other_source").is_none(), "{over_udp}");
        assert_eq!(told(None, Some(1))["other_source"], 1);
    }
}
