//! `plan --validate`: runs the recommended server live, beside its simulation.

use crate::commands::apps::BuiltInApp;
use crate::error::usage;
use crate::progress;
use anyhow::{Context, Result};
use headway_load::{Extent, Load};
use headway_plan::{PlannedServer, Question};
use headway_policy::Resume;
use headway_policy::server::role::Owner;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::{Params, Value};
use headway_report::{PlanReport, Run, Validation};
use headway_runtime::{Layout, Server, Spin};
use headway_sim::{Experiment, Length, ThreadLayout};
use headway_workload::Offered;
use serde_json::Map;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::time::Duration;

/// The time to wait for replies and handlers after the last request was sent.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the best policy that a live server supports for `ns`. `None` if it supports none of the ranked ones.
pub(super) fn validate(
    question: &Question,
    report: &PlanReport,
    ns: u64,
) -> Result<Option<Validation>> {
    let live = report.live.as_ref();
    let Some(entry) = live.and_then(|live| report.ranking.iter().find(|one| one.policy == *live))
    else {
        return Ok(None);
    };
    if question.workload.class_names().len() > 255 {
        return Err(usage("--validate", "a live run has at most 255 classes"));
    }
    let policy: ServerSpec = entry.policy.parse()?;
    let bar = progress::bar(0, "validating");
    bar.enable_steady_tick(Duration::from_millis(100));
    let layout = ThreadLayout::named(&entry.layout);
    let server = PlannedServer {
        layout: layout.unwrap_or_else(|| ThreadLayout::of(&policy.facts(), true)),
        resume: match entry.resume.as_str() {
            "own-worker" => Resume::OwnWorker,
            _ => Resume::Anywhere,
        },
        policy,
    };
    let simulated = simulated(question, report, &server, entry.workers, ns)?;
    let live = played(question, report, &server, entry.workers, ns)?;
    bar.finish_and_clear();
    Ok(Some(Validation {
        policy: entry.policy.clone(),
        met: question.slo.evaluate(&live)?.is_met(),
        simulated,
        live,
    }))
}

/// Without network time, since a loopback has none either.
fn simulated(
    question: &Question,
    report: &PlanReport,
    server: &PlannedServer,
    workers: usize,
    ns: u64,
) -> Result<Run> {
    let policy = server.policy.clone();
    let mut experiment = Experiment::new(question.workload.clone(), policy.into())
        .workers(workers)
        .offered(Offered::Rate(report.offered_rps))
        .costs(question.costs_of(server))
        .seed(question.seed);
    experiment.length = Length::Duration(ns);
    experiment.queue_limit = question.queue_limit;
    experiment.resume = server.resume;
    Ok(experiment.run()?.run)
}

fn played(
    question: &Question,
    report: &PlanReport,
    planned: &PlannedServer,
    workers: usize,
    ns: u64,
) -> Result<Run> {
    let mut builder = Server::builder()
        .policy_spec(planned.policy.clone())
        .classes(BuiltInApp::Spin.classes(&question.workload))
        .workers(workers)
        .seed(question.seed);
    let facts = planned.policy.facts();
    if question.queue_limit != usize::MAX && facts.owner != Owner::Steering {
        builder = builder.queue_limit(question.queue_limit);
    }
    // Others have no thread that could be beside the workers, and refuse the choice.
    if ThreadLayout::has_choice(&facts) {
        builder = builder.layout(if planned.layout.has_thread_beside() {
            Layout::Dedicated
        } else {
            Layout::Inline
        });
    }
    let builder = builder
        .service(Spin::default().longest(Duration::MAX))
        .listen_udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let promises = BuiltInApp::Spin.promises();
    let server = promises
        .apply(builder, Some(planned.resume), None)
        .start()?;
    let target = server.local_addr().context("the server has no address")?;
    let offered = Offered::Rate(report.offered_rps);
    let mut load = Load::new(
        target,
        question.workload.clone(),
        offered,
        Extent::Duration { ns },
    );
    load.seed = question.seed;
    load.workers = workers;
    load.timeout_ns = PATIENCE.as_nanos() as u64;
    load.policy = server.policy().into();
    load.params = json(server.params());
    let played = load.run(|_| ControlFlow::Continue(()));
    server.shutdown(PATIENCE)?;
    Ok(played?.run)
}

fn json(params: &Params) -> Map<String, serde_json::Value> {
    params
        .iter()
        .map(|(key, value): &(&str, Value)| ((*key).to_owned(), headway_sim::value_json(value)))
        .collect()
}
