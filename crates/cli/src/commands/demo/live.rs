//! One run of one policy: a fresh server on loopback UDP, an open-loop client, and a witness that records stops of the machine.

use super::interrupted::not_interrupted;
use crate::commands::demo::entrant::Offer;
use crate::commands::demo::stage::Stage;
use crate::interrupt::Interrupt;
use anyhow::{Context, Result};
use headway_load::{Extent, Load, LoadReport};
use headway_machine::noise::{Stop, Witness};
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::{Params, Value};
use headway_runtime::{Layout, Server, Stats};
use headway_sim::SystemCores;
use headway_workload::Offered;
use serde_json::Map;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How long the client waits for answers after the last request, and the server for its handlers: a class
/// that starves leaves a long queue behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// The prefix of the server's thread names.
const SERVER_THREADS: &str = "hw-";

/// The longest stop that is ignored, ns. Sends, interrupts and the witness stop a thread for 0.1 ms now and then even on an idle machine. A
/// GET behind a SCAN waits for milliseconds.
pub(crate) const FLOOR_NS: u64 = 250_000;

/// The result of the run.
pub(crate) struct Played {
    pub(crate) report: LoadReport,
    pub(crate) stats: Stats,
    /// When the machine kept the server from running.
    pub(crate) stops: Vec<Stop>,
}

/// Starts a server under `policy`, offers the load and stops the server.
pub(crate) fn play(
    stage: &Stage,
    policy: &ServerSpec,
    offer: &Offer,
    interrupt: &Interrupt,
) -> Result<Played> {
    not_interrupted(interrupt)?;
    let server = start(stage, policy, offer.seed)?;
    let witness = Witness::of_threads(SERVER_THREADS, FLOOR_NS);
    let report = load(stage, &server, offer)?.run(|_| interrupt.go_on());
    let stops = witness.map_or_else(|_| blind(), Witness::testify);
    let cores = cores(&server, policy, stage.workers);
    let stats = server.shutdown(PATIENCE)?;
    not_interrupted(interrupt)?;
    let mut report = report?;
    report.run.extras.cores = Some(cores.all());
    report.run.extras.serving_cores = Some(cores.serving());
    Ok(Played {
        report,
        stats,
        stops,
    })
}

/// The cores of the server's threads: where workers take turns as the dispatcher or the monitor, there are none beside theirs.
fn cores(server: &Server, policy: &ServerSpec, workers: usize) -> SystemCores {
    let cores = SystemCores::of(&policy.clone().into(), workers);
    let layouts = [server.layout(), server.monitor_layout()];
    if layouts.contains(&Some(Layout::Dedicated)) {
        return cores;
    }
    SystemCores {
        beside: 0,
        beside_serving: 0,
        ..cores
    }
}

/// Without a witness no request counts as untouched.
fn blind() -> Vec<Stop> {
    vec![Stop {
        from_ns: 0,
        to_ns: u64::MAX,
        lost_ns: 0,
    }]
}

fn start(stage: &Stage, policy: &ServerSpec, seed: u64) -> Result<Server> {
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
    load.keep_answers = true;
    Ok(load)
}

fn json(params: &Params) -> Map<String, serde_json::Value> {
    params
        .iter()
        .map(|(key, value): &(&str, Value)| ((*key).to_owned(), headway_sim::value_json(value)))
        .collect()
}
