//! A running server, as `headway ctl`, Prometheus and browsers ask about it.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

use headway_ops::protocol::CtlResponse;
use headway_ops::status::SERVER;
use headway_ops::subject::Subject;
use headway_policy::server::change::ParamChange;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::find;
use headway_policy::spec::{Params, SpecError};
use headway_policy::{ClassId, Group, Plan};
use headway_words::hint;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Map, Value, json};

use super::metrics;
use super::stacks::stacks;
use crate::engine::layout::Layout;
use crate::engine::parts::LiveEngine;
use crate::server::observer::Observer;
use crate::server::tuner::{InForce, Tuner};
use crate::stats::tally::{ClassStats, FeedbackStats, HeldSections, WorkerStats};

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
        let workers: Vec<_> = workers
            .map(|(index, stats)| worker(&json!(index), stats))
            .collect();
        // A dispatcher that only dispatches runs nothing.
        let dispatchers = stats.dispatchers.iter().enumerate();
        let dispatchers: Vec<_> = dispatchers
            .filter(|(_, stats)| stats.answered + stats.preemptions > 0)
            .map(|(index, stats)| worker(&json!(format!("dispatcher {index}")), stats))
            .collect();
        let wait_queues = stats
            .wait_queues
            .iter()
            .map(|queue| json!({ "waiting": queue.waiting, "congested": queue.congested }));
        let names: Vec<&str> = stats.classes.iter().map(|class| &*class.name).collect();
        let plan = stats.plan.as_ref();
        json!({
            "kind": SERVER,
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "listen": self.listens.map(|addr| format!("udp://{addr}")),
            "policy": self.policy,
            "spec": as_spec(self.policy, &params),
            "params": as_object(&params),
            "changeable": changeable.unwrap_or_default(),
            "changes": changes,
            "layout": match self.layout {
                Some(Layout::Inline) => "inline",
                Some(Layout::Dedicated | Layout::Auto) => "dedicated",
                None if spec.facts().owner == Owner::Nobody => "shared",
                None => "steered",
            },
            "uptime_s": self.since.elapsed().as_secs_f64(),
            "in_force_s": in_force.as_secs_f64(),
            "received": stats.received,
            "answered": stats.answered,
            "shed": stats.shed,
            "kernel_drops": stats.kernel_drops,
            "workers": workers,
            "dispatchers": dispatchers,
            "wait_queues": wait_queues.collect::<Vec<_>>(),
            "classes": stats.classes.iter().map(class).collect::<Vec<_>>(),
            "plan_revisions": stats.plan_revisions,
            "reservation": plan.map(|plan| reservation(plan, &names)),
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
fn reservation(plan: &Plan, names: &[&str]) -> Vec<Value> {
    let group = |group: &Group| {
        let class = ClassId(group.classes.first().unwrap_or(0) as u16);
        json!({
            "classes": group.classes.iter().map(|class| names[class]).collect::<Vec<_>>(),
            "reserved": plan.reserved(class).iter().collect::<Vec<_>>(),
            "stealable": plan.stealable(class).iter().collect::<Vec<_>>(),
        })
    };
    plan.groups.iter().map(group).collect()
}

fn worker(name: &Value, stats: &WorkerStats) -> Value {
    json!({
        "worker": name,
        "answered": stats.answered,
        "own": stats.own,
        "stolen": stats.stolen,
        "resumed": stats.resumed,
        "preempted": stats.preemptions,
        "renewed": stats.renewals,
        "cpu_ns": stats.cpu_ns,
        "queued": stats.queued,
        "held": held(&stats.held),
    })
}

fn class(stats: &ClassStats) -> Value {
    json!({
        "class": stats.name,
        "accepted": stats.accepted,
        "answered": stats.answered,
        "shed": stats.shed,
        "pending": stats.pending(),
        "mean_us": stats.mean_cpu_ns().map(|ns| ns / 1e3),
        "asked": stats.preemptions_asked,
        "preempted": stats.preemptions,
        "renewed": stats.renewals,
        "resumed": stats.resumed,
        "overruns": stats.overruns,
        "longest_gap_us": stats.longest_gap_ns as f64 / 1e3,
        "rescued": stats.rescued,
        "without_thread": stats.without_thread,
        "held": held(&stats.held),
        "feedback": feedback(&stats.feedback),
    })
}

/// The long parts that handlers declared, and their misuses of these calls.
fn feedback(counts: &FeedbackStats) -> Value {
    json!({
        "said_long": counts.said_long,
        "from_short": counts.from_short,
        "unended": counts.unended,
        "unbegun": counts.unbegun,
    })
}

/// Requests that could not yield on demand, by the section that prevented it.
fn held(held: &HeldSections) -> Value {
    let kinds = held.kinds().map(|(kind, counts)| {
        let counts = json!({ "count": counts.count, "ns": counts.ns, "yields": counts.yields });
        (kind.name().to_string(), counts)
    });
    Value::Object(kinds.collect())
}

/// The policy with all its parameters.
fn as_spec(policy: &str, params: &Params) -> String {
    let params = params.iter().map(|(key, value)| format!(",{key}={value}"));
    params.fold(policy.to_owned(), |text, param| text + &param)
}

/// Parameters by key, as a spec writes them.
fn as_object(params: &Params) -> Value {
    let params = params
        .iter()
        .map(|(key, value)| ((*key).to_string(), json!(value.to_string())));
    Value::Object(params.collect::<Map<_, _>>())
}

/// The changed parameters.
fn changes(changes: &[ParamChange]) -> Value {
    let changes = changes.iter().map(|ParamChange { key, old, new }| {
        json!({ "param": key, "old": old.to_string(), "new": new.to_string() })
    });
    json!({ "changes": changes.collect::<Vec<_>>() })
}
