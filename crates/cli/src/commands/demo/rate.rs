//! How much to offer: as much as every policy can carry.

use crate::commands::demo::interrupt::Interrupt;
use crate::commands::demo::rounds::Entrant;
use crate::commands::demo::stage::Stage;
use anyhow::Result;
use headway_policy::spec::Spec;
use headway_sim::Experiment;

/// Loads tried, in percent, from the top.
const HIGHEST_PERCENT: u32 = 80;
const LOWEST_PERCENT: u32 = 10;
/// The load that is simulated, relative to the one that is chosen: room for what a real server and a noisy
/// machine add, and for rounds that happen to bring more SCANs than their share.
pub(crate) const MARGIN: f64 = 1.15;
/// Enough that a backlog which grows is told from one that swings.
const REQUESTS: u64 = 100_000;

/// Classes that a policy leaves behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Starved {
    pub(crate) policy: String,
    pub(crate) classes: Vec<String>,
}

/// The highest load, in steps of a hundredth, at which no policy starves a class in simulation, even at
/// [`MARGIN`] times that load.
pub(crate) fn highest_load(
    stage: &Stage,
    entrants: &[Entrant],
    interrupt: &Interrupt,
) -> Result<f64> {
    for percent in (LOWEST_PERCENT..=HIGHEST_PERCENT).rev() {
        interrupt.check()?;
        let load = f64::from(percent) / 100.0;
        if carried(stage, entrants, load * MARGIN)? {
            return Ok(load);
        }
    }
    Ok(f64::from(LOWEST_PERCENT) / 100.0)
}

fn carried(stage: &Stage, entrants: &[Entrant], load: f64) -> Result<bool> {
    for entrant in entrants {
        if !starved_by(stage, &entrant.policy, load)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What each policy starves at `load`, by simulation.
pub(crate) fn starved(stage: &Stage, entrants: &[Entrant], load: f64) -> Result<Vec<Starved>> {
    let of = |entrant: &Entrant| {
        let policy = entrant.name.clone();
        let classes = starved_by(stage, &entrant.policy, load)?;
        Ok(Starved { policy, classes })
    };
    entrants.iter().map(of).collect()
}

fn starved_by(stage: &Stage, policy: &Spec, load: f64) -> Result<Vec<String>> {
    let experiment = Experiment::new(stage.workload.clone(), policy.clone())
        .workers(stage.workers)
        .load(load)
        .requests(REQUESTS);
    Ok(experiment.run()?.run.extras.starved)
}
