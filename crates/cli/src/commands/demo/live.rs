//! One policy, once: a fresh server on loopback UDP and an open-loop client beside it.

use crate::commands::demo::interrupt::Interrupt;
use crate::commands::demo::objection::{self, Objection};
use crate::commands::demo::stage::Stage;
use anyhow::{Context, Result};
use headway_load::{Extent, Load};
use headway_policy::spec::{Params, Spec, Value};
use headway_policy::{ClassId, Plan};
use headway_report::{Recorder, Run};
use headway_runtime::{Server, Stats};
use headway_workload::Offered;
use serde_json::Map;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::time::Duration;

/// How long the client waits for answers after the last request, and the server for its handlers: a class
/// that starves leaves a long queue behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) rate_rps: f64,
    pub(crate) duration: Duration,
    /// The same seed gives the same requests at the same times, whatever the policy.
    pub(crate) seed: u64,
    /// Leading fraction that is not measured.
    pub(crate) warm_up: f64,
}

/// What came of it.
pub(crate) struct Round {
    pub(crate) run: Run,
    pub(crate) recorder: Recorder,
    /// Why the latencies should not be trusted.
    pub(crate) objections: Vec<Objection>,
    pub(crate) stats: Stats,
}

/// Starts a server under `policy`, offers it the load and stops it again.
pub(crate) fn play(
    stage: &Stage,
    policy: &Spec,
    offer: &Offer,
    interrupt: &Interrupt,
) -> Result<Round> {
    interrupt.check()?;
    let server = start(stage, policy, offer.seed)?;
    let report = load(stage, &server, offer)?.run(|_| match interrupt.pressed() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    let stats = server.shutdown(PATIENCE)?;
    interrupt.check()?;
    let report = report?;
    let flaws = report.flaws.into_iter().map(Objection::Client);
    let disturbance = objection::disturbance(&stats, &stage.workload);
    Ok(Round {
        run: report.run,
        recorder: report.corrected,
        objections: flaws.chain(disturbance).collect(),
        stats,
    })
}

fn start(stage: &Stage, policy: &Spec, seed: u64) -> Result<Server> {
    let server = Server::builder()
        .policy_spec(policy.clone())
        .classes(stage.server_classes())
        .workers(stage.workers)
        .seed(seed)
        .service(stage.kv.clone())
        .listen_udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    Ok(server.start()?)
}

fn load(stage: &Stage, server: &Server, offer: &Offer) -> Result<Load> {
    let target = server.local_addr();
    let target = target.context("the server has no address to send to")?;
    let extent = Extent::Duration {
        ns: offer.duration.as_nanos() as u64,
    };
    let offered = Offered::Rate(offer.rate_rps);
    let mut load = Load::new(target, stage.workload.clone(), offered, extent);
    load.seed = offer.seed;
    load.body = stage.body();
    load.warm_up = offer.warm_up;
    load.timeout_ns = PATIENCE.as_nanos() as u64;
    load.policy = server.policy().into();
    load.params = json(server.params());
    load.workers = stage.workers;
    Ok(load)
}

fn json(params: &Params) -> Map<String, serde_json::Value> {
    let value = |value: &Value| match value {
        Value::Number(number) if number.fract() == 0.0 => (*number as u64).into(),
        Value::Number(number) => (*number).into(),
        time @ Value::Time(_) => time.to_string().into(),
        Value::Word(word) => (*word).into(),
        Value::Text(text) => text.clone().into(),
    };
    let pair = |(key, param): &(&str, Value)| ((*key).to_owned(), value(param));
    params.iter().map(pair).collect()
}

impl Round {
    /// Whether the machine did something else meanwhile.
    pub(crate) fn disturbed(&self) -> bool {
        let is_it = |objection: &Objection| matches!(objection, Objection::Disturbed { .. });
        self.objections.iter().any(is_it)
    }

    /// Whether, at the end, some worker was closed to the longest class.
    pub(crate) fn reserved(&self, workers: usize) -> bool {
        let longest = ClassId((self.run.classes.len() - 1) as u16);
        let open_to_longest =
            |plan: &Plan| plan.reserved(longest).union(plan.stealable(longest)).len();
        let plan = self.stats.plan.as_ref();
        plan.is_some_and(|plan| open_to_longest(plan) < workers)
    }
}
