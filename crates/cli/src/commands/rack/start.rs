//! The parts that the switches in user space and in the kernel share: agents, the first layout, and the output at start and end.

use super::orders::{self, ServerOrders};
use super::settings::RackSettings;
use super::status::RackSubject;
use crate::commands::http;
use crate::output;
use anyhow::{Context, Result};
use headway_ops::http::{HttpAnswering, HttpServer};
use headway_ops::signals;
use headway_ops::socket::{Answering, ControlSocket};
use headway_plan::RackSlo;
use headway_policy::rack::{Bouncing, ControlPlane, Liveness, LivenessRules, Turns};
use headway_rack::agent::{AgentHub, HubRack};
use headway_rack::{
    Membership, RackControl, RackRoster, ScoringTask, SwitchTables, score_by_simulation,
};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Scope};

/// The load that the control plane assumes when it chooses the first groups, before any measurement.
const FIRST_LOAD: f64 = 0.85;

/// Chooses and publishes a control plane's first layout.
pub(super) fn begin_control(
    mut control: ControlPlane,
    turns: Turns,
    slo: Option<&RackSlo>,
    tables: &Arc<SwitchTables>,
) -> RackControl {
    let first = ScoringTask {
        control: control.clone(),
        load: FIRST_LOAD,
    };
    control.choose(&score(turns, slo, &first));
    RackControl::new(control, Arc::clone(tables))
}

/// Reports that the control plane panicked; the panic's own message has the reason.
pub(super) fn control_failed() {
    say!(
        "the control plane failed: packets go on by the last tables, and another one takes these up"
    );
}

/// Ends the control plane when the thread that it serves ends, even by a panic.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Scores candidate layouts for the servers that are present.
pub(super) fn score(turns: Turns, slo: Option<&RackSlo>, task: &ScoringTask) -> Vec<f64> {
    let layout = task.control.layout();
    let cores: Vec<usize> = (0..layout.servers())
        .map(|server| layout.capacity(server))
        .collect();
    score_by_simulation(&cores, turns, slo, task)
}

/// The watch of the settings over all places. A server that drains counts as one without cores.
pub(super) fn liveness(settings: &RackSettings, roster: &RackRoster) -> Liveness {
    let cores = roster.members().into_iter().map(|member| match member {
        Some(member) if member.membership == Membership::Serves => member.cores,
        _ => 0,
    });
    let cores: Vec<_> = cores.collect();
    let rules = LivenessRules {
        silent_ns: settings.silent_ns.unwrap_or(LivenessRules::NEVER),
        ..LivenessRules::default()
    };
    Liveness::new(&cores, rules)
}

/// SIGHUPs that came, for [`reload_on`].
pub(super) struct ReloadWishes(Receiver<()>);

/// Calls `stop` on SIGTERM and SIGINT. A second signal to stop ends the process at once.
pub(super) fn heed_signals(stop: impl Fn() + Send + 'static) -> Result<ReloadWishes> {
    let (wish, wishes) = sync_channel(1);
    let reload = move || {
        // A wish that waits already stands for this one too.
        let _ = wish.try_send(());
    };
    signals::heed_reloading(stop, reload).context("cannot watch for signals")?;
    Ok(ReloadWishes(wishes))
}

/// Has the servers read anew on SIGHUP.
pub(super) fn reload_on(wishes: ReloadWishes, orders: &Arc<ServerOrders>) -> Result<()> {
    let orders = Arc::clone(orders);
    thread::Builder::new()
        .name("hw-reload".into())
        .spawn(move || {
            for () in wishes.0 {
                orders.read_anew();
            }
        })
        .context("cannot start the thread that reads the settings anew")?;
    Ok(())
}

/// Binds the port for agents' reports; none if the settings have no agents.
pub(super) fn hear_agents(
    settings: &RackSettings,
    switch: SocketAddr,
    bouncing: Bouncing,
    orders: &Arc<ServerOrders>,
) -> Result<Option<Arc<AgentHub>>> {
    let Some(agents) = &settings.agents else {
        return Ok(None);
    };
    let rack = HubRack {
        servers: orders.roster.addresses(),
        switch_port: switch.port(),
        bouncing,
        tables: Arc::clone(&orders.tables),
        roster: Some(Arc::clone(&orders.roster)),
        admits: agents.may_join.then(|| orders::admission(orders)),
    };
    let hub = AgentHub::bind(agents.at.value, agents.key.clone(), rack);
    let hub = hub.map_err(|error| {
        let at = agents.at.value;
        agents.at.refused(format!(
            "cannot listen at {at} for agents: {error}; choose another port by --agents ADDR:PORT"
        ))
    })?;
    say!("agents report to udp://{}", hub.local_addr()?);
    Ok(Some(Arc::new(hub)))
}

/// The threads that answer at a switch's doors, until they are dropped.
pub(super) type SwitchDoors = (Option<Answering>, Option<HttpAnswering>);

/// Answers at the control socket and the page of metrics, where there are any.
pub(super) fn answer(
    socket: Option<ControlSocket>,
    metrics: Option<HttpServer>,
    subject: &Arc<RackSubject>,
) -> Result<SwitchDoors> {
    let answering = socket
        .map(|socket| socket.answer(Arc::clone(subject)))
        .transpose()
        .context("cannot start the thread that answers headway rack status")?;
    let metrics = metrics.map(|metrics| http::answer(metrics, Arc::clone(subject)));
    Ok((answering, metrics.transpose()?))
}

/// Runs `forward` in a thread of this name until it returns, with the agents' thread beside it and `keep_control` in this thread. Both end
/// with it, by `stopped`.
pub(super) fn forward_beside<T: Send>(
    name: &str,
    forward: impl FnOnce() -> T + Send,
    agents: Option<&AgentHub>,
    stopped: &AtomicBool,
    keep_control: impl FnOnce(),
) -> Result<T> {
    let ended = thread::scope(|scope| {
        let forwarding = thread::Builder::new().name(name.into());
        let forwarding = forwarding.spawn_scoped(scope, || {
            let _ends = EndsWith(stopped);
            forward()
        })?;
        if let Some(agents) = agents {
            run_agents(scope, agents, stopped);
        }
        keep_control();
        Ok(forwarding.join())
    });
    let ended = ended.map_err(|error: std::io::Error| {
        anyhow::anyhow!("cannot start the thread {name}: {error}")
    })?;
    ended.map_err(|_| anyhow::anyhow!("the thread {name} panicked; its message says why"))
}

/// Receives agents' reports until `stopped`. Without this thread, only responses show whether servers are alive.
fn run_agents<'scope>(
    scope: &'scope Scope<'scope, '_>,
    agents: &'scope AgentHub,
    stopped: &'scope AtomicBool,
) {
    let hearing = thread::Builder::new().name("hw-agents".into());
    if let Err(error) = hearing.spawn_scoped(scope, || agents.run(stopped)) {
        say!("agents are not heard: {error}");
    }
}

/// Prints the address on a line of its own for programs that wait for the switch, and the rest to standard error for people.
pub(super) fn announce(
    settings: &RackSettings,
    at: SocketAddr,
    subject: &RackSubject,
) -> Result<()> {
    let members = subject.members();
    let cores: usize = members.iter().map(|member| member.cores).sum();
    say!(
        "shapes requests for {} server{} of {cores} worker{} in all by {}",
        members.len(),
        if members.len() == 1 { "" } else { "s" },
        if cores == 1 { "" } else { "s" },
        subject.spec()
    );
    let line = format!("listening {}", settings.listen.value.shown(at));
    if settings.format.is_json() {
        say!("{line}");
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Prints the packet counts.
pub(super) fn tell(settings: &RackSettings, counts: &Value) -> Result<()> {
    let mut writer = output::open(None)?;
    if settings.format.is_json() {
        return output::json(counts, writer);
    }
    let counts = counts.as_object().into_iter().flatten();
    let words = counts.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    writeln!(writer, "{}", words.collect::<Vec<_>>().join(", "))?;
    Ok(writer.flush()?)
}
