//! What `--compare-sim` measures before the runs, and the simulations with it.

use crate::progress;
use anyhow::Result;
use headway_bench::calibrate::{Calibration, calibrate, steps};
use headway_bench::compare::Comparison;
use headway_bench::{LoopbackPath, Observed, Trial};
use headway_sim::{Costs, ThreadLayout};
use std::time::Duration;

/// This machine's costs under the layouts of the trials.
pub(super) struct BenchCosts {
    pub(super) calibration: Calibration,
    /// What loopback adds, where requests come that way.
    pub(super) loopback: Option<LoopbackPath>,
}

impl BenchCosts {
    pub(super) fn measure(trials: &[Trial], look_every: Option<Duration>) -> Result<Self> {
        let mut layouts: Vec<ThreadLayout> = Vec::new();
        for trial in trials {
            let layout = trial.thread_layout()?;
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        let over_udp = trials.iter().any(|trial| trial.over_udp);
        let dedicated = layouts.iter().any(|layout| layout.has_thread_beside());
        let of_dispatcher = if dedicated {
            ThreadLayout::Dedicated
        } else {
            ThreadLayout::Inline
        };
        // The way over loopback is measured by a server with a dispatcher.
        if over_udp && !layouts.contains(&of_dispatcher) {
            layouts.push(of_dispatcher);
        }
        let bar = progress::bar(steps(layouts.len()) as u64, "calibrating");
        let mut calibration = calibrate(&layouts, None, |step| bar.set_position(step as u64))?;
        bar.finish_and_clear();
        if let Some(doubt) = calibration.doubt() {
            eprintln!("the simulation rests on doubtful costs: {doubt}");
        }
        if let Some(interval) = look_every {
            let interval_ns = interval.as_nanos() as u64;
            calibration.costs = looking_every(interval_ns, calibration.costs);
            let layouts = calibration.layouts;
            calibration.layouts = layouts.map(|costs| looking_every(interval_ns, costs));
        }
        let loopback = over_udp.then(|| LoopbackPath::measure(&calibration.layouts, dedicated));
        Ok(Self {
            loopback: loopback.transpose()?,
            calibration,
        })
    }

    /// Each run beside its simulation.
    pub(super) fn compare(
        &self,
        trials: &[Trial],
        observed: Vec<Observed>,
    ) -> Result<Vec<Comparison>> {
        let mut comparisons = Vec::new();
        for (index, observed) in observed.into_iter().enumerate() {
            let mut trial = trials[index % trials.len()].clone();
            trial.experiment.seed = observed.run.meta.seed;
            let layout = trial.thread_layout()?;
            let mut costs = self.calibration.layouts.of(layout);
            let mut simulated = trial.clone();
            if let Some(path) = &self.loopback {
                costs = path.costs(layout, costs);
                simulated.experiment.network_ns += path.network_ns;
            }
            comparisons.push(Comparison::of(&simulated, observed, costs)?);
        }
        Ok(comparisons)
    }
}

/// The costs with another interval between looks, where workers look at all.
fn looking_every(interval_ns: u64, costs: Costs) -> Costs {
    match costs.look_ns {
        0 => costs,
        _ => Costs {
            look_ns: interval_ns,
            ..costs
        },
    }
}
