//! What this machine has too few cores to show: the same mix on 14 workers, and the whole curve on as many as
//! were live, by simulation.

use crate::commands::demo::interrupt::Interrupt;
use crate::commands::demo::rounds::Entrant;
use crate::commands::demo::stage::Stage;
use anyhow::Result;
use headway_report::Run;
use headway_sim::{Experiment, available_threads, in_parallel};

/// The papers' testbeds have 14 workers.
pub(crate) const WORKERS: usize = 14;
/// Requests of a simulated point.
pub(crate) const REQUESTS: u64 = 120_000;
/// Loads, in percent.
const LOADS: [u32; 16] = [
    10, 20, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95,
];

/// A policy's simulated runs, by ascending load.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) runs: Vec<Run>,
}

impl Curve {
    /// The runs that starve no class: the others' tails only measure the runs' length.
    pub(crate) fn sound(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.meta.overloaded)
    }
}

/// The curve of each policy on `workers` workers.
pub(crate) fn curves(
    stage: &Stage,
    entrants: &[Entrant],
    workers: usize,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Curve>> {
    let mut experiments = Vec::new();
    for entrant in entrants {
        experiments.extend(LOADS.map(|percent| {
            Experiment::new(stage.workload.clone(), entrant.policy.clone())
                .workers(workers)
                .load(f64::from(percent) / 100.0)
                .requests(REQUESTS)
                .seed(seed)
        }));
    }
    let run = |experiment: &Experiment| -> Result<Run> {
        interrupt.check()?;
        Ok(experiment.run()?.run)
    };
    let runs = in_parallel(&experiments, available_threads(), run, |_, _| {});
    let mut runs = runs.into_iter();
    let mut curve = |entrant: &Entrant| {
        let runs = runs.by_ref().take(LOADS.len()).collect::<Result<_>>()?;
        let name = entrant.name.clone();
        Ok(Curve { name, runs })
    };
    entrants.iter().map(&mut curve).collect()
}
