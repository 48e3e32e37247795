//! What the switch in user space and the one in the kernel have in common: agents, the first layout, and what is said at the start and at the end.

use super::settings::RackSettings;
use super::status::RackSubject;
use crate::output;
use anyhow::Result;
use headway_policy::rack::{Bouncing, ControlPlane, Turns};
use headway_rack::agent::{AgentHub, HubRack};
use headway_rack::{RackControl, ScoringTask, SwitchTables, score_by_simulation};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};

/// The load at which the first groups are chosen, before anything is measured.
const FIRST_LOAD: f64 = 0.85;

/// A control plane with its first layout, published.
pub(super) fn begin_control(
    mut control: ControlPlane,
    turns: Turns,
    tables: &Arc<SwitchTables>,
) -> RackControl {
    let first = ScoringTask {
        control: control.clone(),
        load: FIRST_LOAD,
    };
    control.choose(&score(turns, &first));
    RackControl::new(control, Arc::clone(tables))
}

/// Says that the control plane panicked; its own message says why.
pub(super) fn control_failed() {
    eprintln!(
        "the control plane failed: packets go on by the last tables, and another one takes these up"
    );
}

/// Ends the control plane with the thread that it works for, by a panic too.
pub(super) struct EndsWith<'a>(pub(super) &'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Scores candidates for the servers that are there.
pub(super) fn score(turns: Turns, task: &ScoringTask) -> Vec<f64> {
    let layout = task.control.layout();
    let cores: Vec<usize> = (0..layout.servers())
        .map(|server| layout.capacity(server))
        .collect();
    score_by_simulation(&cores, turns, task)
}

/// Binds the port that agents report to, where the settings want agents.
pub(super) fn hear_agents(
    settings: &RackSettings,
    switch: SocketAddr,
    bouncing: Bouncing,
    tables: &Arc<SwitchTables>,
) -> Result<Option<Arc<AgentHub>>> {
    let Some(agents) = &settings.agents else {
        return Ok(None);
    };
    let rack = HubRack {
        servers: settings.addresses.clone(),
        switch_port: switch.port(),
        bouncing,
        tables: Arc::clone(tables),
    };
    let hub = AgentHub::bind(agents.at.value, agents.key.clone(), rack);
    let hub = hub.map_err(|error| {
        let at = agents.at.value;
        agents.at.refused(format!(
            "cannot listen at {at} for agents: {error}; choose another port by --agents ADDR:PORT"
        ))
    })?;
    eprintln!("agents report to udp://{}", hub.local_addr()?);
    Ok(Some(Arc::new(hub)))
}

/// Hears agents until `stopped`. Without this thread servers are watched by their responses alone.
pub(super) fn run_agents<'scope>(
    scope: &'scope Scope<'scope, '_>,
    agents: &'scope AgentHub,
    stopped: &'scope AtomicBool,
) {
    let hearing = thread::Builder::new().name("hw-agents".into());
    if let Err(error) = hearing.spawn_scoped(scope, || agents.run(stopped)) {
        eprintln!("agents are not heard: {error}");
    }
}

/// The first line is for programs that wait for the switch, the rest for people.
pub(super) fn announce(
    settings: &RackSettings,
    at: SocketAddr,
    subject: &RackSubject,
) -> Result<()> {
    let cores: usize = settings.cores.iter().sum();
    eprintln!(
        "shapes requests for {} server{} of {cores} worker{} in all by {}",
        settings.servers.len(),
        if settings.servers.len() == 1 { "" } else { "s" },
        if cores == 1 { "" } else { "s" },
        subject.spec()
    );
    let line = format!("listening {}", settings.listen.value.shown(at));
    if settings.format.is_json() {
        eprintln!("{line}");
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// What came of the packets.
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
