//! The choice of the load: the highest that every policy sustains.

use super::interrupted::not_interrupted;
use crate::commands::demo::entrant::Entrant;
use crate::commands::demo::stage::Stage;
use crate::interrupt::Interrupt;
use anyhow::Result;
use headway_policy::server::systems::ServerSpec;
use headway_report::Run;
use headway_sim::Experiment;

/// Loads tried, in percent, from the top.
const HIGHEST_PERCENT: u32 = 80;
const LOWEST_PERCENT: u32 = 10;
/// The simulated load relative to the chosen one. The margin covers the overhead of a real server, a noisy
/// machine, and rounds with more SCANs than average.
pub(crate) const MARGIN: f64 = 1.4;
/// Enough to separate a backlog that grows from one that swings.
const REQUESTS: u64 = 100_000;

/// The highest load, in steps of a hundredth, at which no policy starves a class in simulation, even at
/// [`MARGIN`] times that load.
pub(crate) fn highest_load(
    stage: &Stage,
    entrants: &[Entrant],
    interrupt: &Interrupt,
) -> Result<f64> {
    let mut weakest_first: Vec<&Entrant> = entrants.iter().collect();
    for percent in (LOWEST_PERCENT..=HIGHEST_PERCENT).rev() {
        not_interrupted(interrupt)?;
        let load = f64::from(percent) / 100.0;
        match first_to_starve(stage, &weakest_first, load * MARGIN)? {
            // A policy that starved a class at one load is likely to at the next: one simulation says so.
            Some(index) => weakest_first[..=index].rotate_right(1),
            None => return Ok(load),
        }
    }
    Ok(f64::from(LOWEST_PERCENT) / 100.0)
}

/// The index of the first policy that starves a class at `load`.
fn first_to_starve(stage: &Stage, entrants: &[&Entrant], load: f64) -> Result<Option<usize>> {
    for (index, entrant) in entrants.iter().enumerate() {
        let run = simulated(stage, &entrant.policy, load)?;
        if !run.extras.starved.is_empty() {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Simulates every policy at `load` with the number of live workers.
pub(crate) fn foreseen(stage: &Stage, entrants: &[Entrant], load: f64) -> Result<Vec<Run>> {
    entrants
        .iter()
        .map(|entrant: &Entrant| simulated(stage, &entrant.policy, load))
        .collect()
}

fn simulated(stage: &Stage, policy: &ServerSpec, load: f64) -> Result<Run> {
    let experiment = Experiment::new(stage.workload.clone(), policy.clone().into())
        .workers(stage.workers)
        .load(load)
        .requests(REQUESTS);
    Ok(experiment.run()?.run)
}
