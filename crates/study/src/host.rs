//! A host whose applications trade cores.

use crate::{Mistake, StudyError, SystemSetup, parse};
use headway_policy::host::HostTopology;
use headway_policy::spec::Spec;
use headway_sim::Length;
use headway_sim::host::{App, HostCosts, HostExperiment};
use headway_workload::{Offered, Workload};

const DEFAULT_REQUESTS: u64 = 500_000;
const DEFAULT_NS: u64 = 200_000_000;

/// The experiment, checked: the host grants the setup's workers as cores to the applications.
///
/// # Errors
/// Something in it is wrong, or the setup says something that a host ignores.
pub fn experiment(
    setup: &SystemSetup,
    allocator: Spec,
    apps: Vec<App>,
    threads_per_core: Option<u8>,
    costs: Option<&str>,
) -> Result<HostExperiment, StudyError> {
    refuse_what_is_ignored(setup)?;
    let mut experiment = HostExperiment::new(setup.workers, allocator).seed(setup.seed);
    match threads_per_core {
        Some(1) => experiment.topology = HostTopology::flat(setup.workers),
        None | Some(2) => {}
        Some(_) => return Err(Mistake::at("threads-per-core", "must be 1 or 2").into()),
    }
    experiment.network_ns = setup.network_ns;
    set_costs(&mut experiment.costs, costs)?;
    experiment.duration_ns = duration_ns(setup, &apps);
    experiment.apps = apps;
    experiment.check()?;
    Ok(experiment)
}

/// The applications of a host where none are named: one of the workload with every core guaranteed, and a batch application.
#[must_use]
pub fn server_and_batch(workload: Workload, offered: Offered, cores: usize) -> Vec<App> {
    let rate_rps = match offered {
        Offered::Rate(rate_rps) => rate_rps,
        Offered::Load { load, workers } => workload.rate_for_load(load, workers),
    };
    vec![
        App::server("server", workload, rate_rps).guaranteed(cores),
        App::batch("batch"),
    ]
}

fn refuse_what_is_ignored(setup: &SystemSetup) -> Result<(), Mistake> {
    setup.refuse_all_costs_but_network(
        "a host's costs are those of --host-costs; its queues are unbounded, and nothing is interrupted within an application",
    )?;
    setup.refuse_circumstances("a host's applications are simulated as they are", true)?;
    if setup.cores.is_some() {
        let why = "the cores that a host grants are its --workers";
        return Err(Mistake::at("cores", why));
    }
    let why = "a host is one server: leave it out";
    if setup.servers != 1 {
        return Err(Mistake::at("servers", why));
    }
    if setup.racks != 1 {
        return Err(Mistake::at("racks", why));
    }
    Ok(())
}

/// The requested duration, or the time that the requests take.
fn duration_ns(setup: &SystemSetup, apps: &[App]) -> u64 {
    match setup.length(DEFAULT_REQUESTS) {
        Length::Duration(ns) => ns,
        Length::Requests(requests) => {
            let rate_rps: f64 = apps.iter().map(|app| app.mean_rate_rps(DEFAULT_NS)).sum();
            if rate_rps > 0.0 {
                (requests as f64 * 1e9 / rate_rps) as u64
            } else {
                DEFAULT_NS
            }
        }
    }
}

/// Sets the costs of a text: `daemon=2us,leave=1us`.
fn set_costs(costs: &mut HostCosts, text: Option<&str>) -> Result<(), Mistake> {
    let fault = |problem: String| Mistake::at("host-costs", problem);
    for part in text.iter().flat_map(|text| text.split(',')) {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| fault(format!("'{part}' is not key=time")))?;
        let ns = parse::cost(value).map_err(fault)?;
        *match key {
            "daemon" => &mut costs.daemon_ns,
            "leave" => &mut costs.leave_ns,
            "wake" => &mut costs.wake_ns,
            "park" => &mut costs.park_ns,
            "spin" => &mut costs.spin_ns,
            "packet" => &mut costs.packet_ns,
            "overhead" => &mut costs.overhead_ns,
            _ => {
                let valid = "daemon, leave, wake, park, spin, packet, overhead";
                return Err(fault(format!(
                    "no cost is called '{key}'; there are: {valid}"
                )));
            }
        } = ns;
    }
    Ok(())
}
