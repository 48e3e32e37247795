//! A running server, as `headway ctl`, Prometheus and browsers ask about it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

use headway_ops::protocol::CtlResponse;
use headway_ops::server_status::{
    FeedbackStatus, HeldSectionStatus, HeldStatus, LiveServerStatus, ReservationStatus,
    ServerClassStatus, ServerWorkerStatus, WaitQueueStatus,
};
use headway_ops::status::{SERVER, TimesStatus};
use headway_ops::subject::Subject;
use headway_policy::server::change::ParamChange;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::find;
use headway_policy::spec::{Params, SpecError};
use headway_policy::{ClassId, Group, Plan};
use headway_words::hint;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::metrics;
use super::stacks::stacks;
use crate::engine::layout::Layout;
use crate::engine::parts::LiveEngine;
use crate::server::observer::Observer;
use crate::server::tuner::{InForce, Tuner};
use crate::stats::tally::{ClassStats, FeedbackStats, HeldSections, WaitQueueStats, WorkerStats};

/// A running server, as the one that clients ask about.
pub(in crate::server) struct ServerSubject {
    observer: Observer,
    tuner: Tuner,
    policy: &'static str,
    layout: Option<Layout>,
    listens: Option<SocketAddr>,
    since: Instant,
}

impl ServerSubject {
    /// Of a server that has just started.
    pub(in crate::server) fn new(
        engine: &LiveEngine,
        policy: &'static str,
        listens: Option<SocketAddr>,
        observer: &Observer,
        tuner: &Tuner,
    ) -> Self {
        Self {
            observer: observer.clone(),
            tuner: tuner.clone(),
            policy,
            layout: engine.layout,
            listens,
            since: Instant::now(),
        }
    }

    fn layout_name(&self, owner: Owner) -> &'static str {
        match self.layout {
            Some(Layout::Inline) => "inline",
            Some(Layout::Dedicated | Layout::Auto) => "dedicated",
            None if owner == Owner::Nobody => "shared",
            None => "steered",
        }
    }
}

impl Subject for ServerSubject {
    /// The object of `headway ctl status`.
    fn status(&self) -> Value {
        let stats = self.observer.stats();
        let InForce {
            spec,
            params,
            since,
            changes,
        } = self.tuner.in_force();
        let in_force = SystemTime::now().duration_since(since).unwrap_or_default();
        let changeable = find(self.policy).map(|policy| policy.about.changeable());
        let workers = stats.workers.iter().enumerate();
        let workers = workers.map(|(index, stats)| worker(json!(index), stats));
        // A dispatcher that only dispatches runs nothing.
        let dispatchers = stats.dispatchers.iter().enumerate();
        let dispatchers = dispatchers
            .filter(|(_, stats)| stats.answered + stats.preemptions > 0)
            .map(|(index, stats)| worker(json!(format!("dispatcher {index}")), stats));
        let names: Vec<&str> = stats.classes.iter().map(|class| &*class.name).collect();
        let plan = stats.plan.as_ref();
        json!(LiveServerStatus {
            kind: SERVER.into(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            listen: self.listens.map(|addr| format!("udp://{addr}")),
            policy: self.policy.into(),
            spec: as_spec(self.policy, &params),
            params: by_key(&params),
            changeable: changeable
                .unwrap_or_default()
                .into_iter()
                .map(Into::into)
                .collect(),
            changes,
            layout: self.layout_name(spec.facts().owner).into(),
            uptime_s: self.since.elapsed().as_secs_f64(),
            in_force_s: in_force.as_secs_f64(),
            received: stats.received,
            answered: stats.answered,
            shed: stats.shed,
            too_large: stats.too_large,
            refused: stats.refused_draining,
            malformed: stats.malformed,
            handed_back: stats.handed_back,
            abandoned: stats.abandoned,
            unsent: stats.unsent,
            kernel_drops: stats.kernel_drops,
            workers: workers.collect(),
            dispatchers: dispatchers.collect(),
            wait_queues: stats.wait_queues.iter().map(wait_queue).collect(),
            classes: stats.classes.iter().map(class).collect(),
            plan_revisions: stats.plan_revisions,
            reservation: plan.map(|plan| reservation(plan, &names)),
        })
    }

    fn set(&self, params: &[(String, String)]) -> CtlResponse {
        let changed = self.tuner.set(params);
        let changed = changed.map_err(|error| explained(&error))?;
        Ok(changes(&changed))
    }

    fn stacks(&self) -> CtlResponse {
        stacks(&self.observer)
    }

    fn collect(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        metrics::collect(&self.observer.stats(), encoder)
    }
}

/// The error, with the nearest valid word.
fn explained(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, valid)| hint(word, valid));
    format!("{error}{hint}")
}

/// The plan's groups of classes, by name, and the workers that each has and may use.
fn reservation(plan: &Plan, names: &[&str]) -> Vec<ReservationStatus> {
    let group = |group: &Group| {
        let class = ClassId(group.classes.first().unwrap_or(0) as u16);
        let classes = group.classes.iter().map(|class| names[class].into());
        ReservationStatus {
            classes: classes.collect(),
            reserved: plan.reserved(class).iter().collect(),
            stealable: plan.stealable(class).iter().collect(),
        }
    };
    plan.groups.iter().map(group).collect()
}

fn wait_queue(stats: &WaitQueueStats) -> WaitQueueStatus {
    WaitQueueStatus {
        waiting: stats.waiting,
        congested: stats.congested,
    }
}

fn worker(name: Value, stats: &WorkerStats) -> ServerWorkerStatus {
    ServerWorkerStatus {
        worker: name,
        answered: stats.answered,
        own: stats.own,
        stolen: stats.stolen,
        resumed: stats.resumed,
        preempted: stats.preemptions,
        renewed: stats.renewals,
        cpu_ns: stats.cpu_ns,
        queued: stats.queued,
        held: held(&stats.held),
    }
}

fn class(stats: &ClassStats) -> ServerClassStatus {
    ServerClassStatus {
        class: stats.name.clone(),
        accepted: stats.accepted,
        answered: stats.answered,
        shed: stats.shed,
        shed_queue_full: stats.sheds.queue_full,
        shed_no_buffer: stats.sheds.no_buffer,
        shed_no_stack: stats.sheds.no_stack,
        shed_clones: stats.sheds.clones,
        pending: stats.pending(),
        queued: stats.queued(),
        running: stats.running,
        mean_us: stats.mean_cpu_ns().map(|ns| ns / 1e3),
        asked: stats.preemptions_asked,
        preempted: stats.preemptions,
        renewed: stats.renewals,
        resumed: stats.resumed,
        overruns: stats.overruns,
        longest_gap_us: stats.longest_gap_ns as f64 / 1e3,
        rescued: stats.rescued,
        without_thread: stats.without_thread,
        wait: TimesStatus::from(&stats.wait),
        service: TimesStatus::from(&stats.service),
        held: held(&stats.held),
        feedback: feedback(&stats.feedback),
    }
}

/// The long parts that handlers declared, and their misuses of these calls.
fn feedback(counts: &FeedbackStats) -> FeedbackStatus {
    FeedbackStatus {
        said_long: counts.said_long,
        from_short: counts.from_short,
        unended: counts.unended,
        unbegun: counts.unbegun,
    }
}

/// Requests that could not yield on demand, by the section that prevented it.
fn held(held: &HeldSections) -> HeldStatus {
    let kinds = held.kinds().map(|(kind, counts)| {
        let counts = HeldSectionStatus {
            count: counts.count,
            ns: counts.ns,
            yields: counts.yields,
        };
        (kind.name().to_string(), counts)
    });
    kinds.collect()
}

/// The policy with all its parameters.
fn as_spec(policy: &str, params: &Params) -> String {
    let params = params.iter().map(|(key, value)| format!(",{key}={value}"));
    params.fold(policy.to_owned(), |text, param| text + &param)
}

/// Parameters by key, as a spec writes them.
fn by_key(params: &Params) -> BTreeMap<String, String> {
    let params = params
        .iter()
        .map(|(key, value)| ((*key).to_string(), value.to_string()));
    params.collect()
}

/// The changed parameters.
fn changes(changes: &[ParamChange]) -> Value {
    let changes = changes.iter().map(|ParamChange { key, old, new }| {
        json!({ "param": key, "old": old.to_string(), "new": new.to_string() })
    });
    json!({ "changes": changes.collect::<Vec<_>>() })
}
