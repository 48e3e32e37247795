//! Simulation of the same mix, free of the machine's noise: with the number of live workers, and with 14, which may exceed this
//! machine's cores.

use super::interrupted::not_interrupted;
use crate::commands::demo::entrant::Entrant;
use crate::commands::demo::rate;
use crate::commands::demo::stage::Stage;
use crate::interrupt::Interrupt;
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

/// The results of all simulations.
pub(crate) struct Theory {
    /// Each policy at the load and on the workers of the live rounds.
    pub(crate) live: Vec<Run>,
    /// The whole curves on these workers.
    pub(crate) here: Vec<Curve>,
    /// The whole curves on [`WORKERS`].
    pub(crate) beyond: Vec<Curve>,
}

/// The load of a busy server, provided that no policy starves a class at it.
const BUSY: f64 = 0.8;

impl Theory {
    pub(crate) fn of(
        stage: &Stage,
        entrants: &[Entrant],
        load: f64,
        seed: u64,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Ok(Self {
            live: rate::foreseen(stage, entrants, load)?,
            here: curves(stage, entrants, stage.workers, seed, interrupt)?,
            beyond: curves(stage, entrants, WORKERS, seed, interrupt)?,
        })
    }

    /// Each policy on [`WORKERS`] at the highest load up to [`BUSY`] at which none starves a class; none where there is no such load.
    pub(crate) fn busy(&self) -> Option<Vec<&Run>> {
        let at = |index: usize| self.beyond.iter().map(move |curve| &curve.runs[index]);
        let index = (0..LOADS.len()).rev().find(|index: &usize| {
            let mut runs = at(*index);
            runs.all(|run| !run.meta.overloaded && run.meta.load < BUSY + 1e-9)
        })?;
        Some(at(index).collect())
    }
}

impl Curve {
    /// The runs that starve no class. Tails of the other runs only measure the length of the run.
    pub(crate) fn sound(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.meta.overloaded)
    }
}

/// The curve of each policy on `workers` workers.
fn curves(
    stage: &Stage,
    entrants: &[Entrant],
    workers: usize,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Curve>> {
    let mut experiments = Vec::new();
    for entrant in entrants {
        experiments.extend(LOADS.map(|percent| {
            Experiment::new(stage.workload.clone(), entrant.policy.clone().into())
                .workers(workers)
                .load(f64::from(percent) / 100.0)
                .requests(REQUESTS)
                .seed(seed)
        }));
    }
    let runs = in_parallel(
        &experiments,
        available_threads(),
        |experiment: &Experiment| -> Result<Run> {
            not_interrupted(interrupt)?;
            Ok(experiment.run()?.run)
        },
        |_, _| {},
    );
    let mut runs = runs.into_iter();
    entrants
        .iter()
        .map(|entrant: &Entrant| {
            let runs = runs.by_ref().take(LOADS.len()).collect::<Result<_>>()?;
            let name = entrant.name.clone();
            Ok(Curve { name, runs })
        })
        .collect()
}
