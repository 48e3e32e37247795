//! Policies × loads, each point replicated, with intervals.

use headway_report::Run;
use headway_report::slo::{Measure, Scope, Statistic};
use headway_report::stats::{ConfidenceInterval, mean_interval};
use headway_sim::{CONFIDENCE, Experiment, Figure, SimError, in_parallel};
use std::collections::BTreeMap;

/// No request is done in less than its service time.
pub const LEAST_SLOWDOWN: f64 = 1.0;

/// The progress of a sweep, in runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SweepProgress {
    /// So many more runs are to be done.
    More(u64),
    /// A run is done.
    Run,
}

/// Runs every experiment under consecutive seeds until it has as many runs as `wanted` says of
/// those made, or until they are cut off. All points are replicated side by side; which of them need more runs is decided between batches.
///
/// # Errors
/// An experiment is not valid.
pub fn replicated(
    experiments: &[Experiment],
    threads: usize,
    wanted: impl Fn(&[Run]) -> u64,
    mut progress: impl FnMut(SweepProgress),
) -> Result<Vec<Vec<Run>>, SimError> {
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); experiments.len()];
    let is_cut_off = || experiments.iter().any(Experiment::is_cut_off);
    loop {
        let batch: Vec<(usize, u64)> = runs
            .iter()
            .enumerate()
            .flat_map(|(point, made): (usize, &Vec<Run>)| {
                (made.len() as u64..wanted(made)).map(move |replication| (point, replication))
            })
            .collect();
        if batch.is_empty() || is_cut_off() {
            return Ok(runs);
        }
        progress(SweepProgress::More(batch.len() as u64));
        let run = |&(point, replication): &(usize, u64)| {
            let experiment = &experiments[point];
            let seed = experiment.seed.wrapping_add(replication);
            if experiment.is_cut_off() {
                return Ok(None);
            }
            let mut run = experiment.clone().seed(seed).run()?.run;
            run.extras.label = Some(experiment.policy.to_string());
            // A run of another length does not compare with the others.
            Ok::<_, SimError>(Some(run).filter(|run| !run.extras.cut_off))
        };
        let made = in_parallel(&batch, threads, run, |_, _| progress(SweepProgress::Run));
        for ((point, _), run) in batch.into_iter().zip(made) {
            runs[point].extend(run?);
        }
    }
}

/// Each figure of a point with its interval; none where a single run has no spread, or nothing was measured.
#[must_use]
pub fn intervals(runs: &[Run]) -> BTreeMap<String, ConfidenceInterval> {
    const STATISTICS: [Statistic; 4] = [
        Statistic::Mean,
        Statistic::P50,
        Statistic::P99,
        Statistic::P999,
    ];
    let classes = runs.first().into_iter().flat_map(|run| &run.classes);
    let scopes = classes.map(|class| Scope::Class(class.name.clone()));
    let mut intervals = BTreeMap::new();
    for scope in std::iter::once(Scope::Overall).chain(scopes) {
        for (measure, least) in [(Measure::Latency, 0.0), (Measure::Slowdown, LEAST_SLOWDOWN)] {
            for statistic in STATISTICS {
                let figure = Figure {
                    scope: scope.clone(),
                    measure,
                    statistic,
                };
                let values: Vec<f64> = runs.iter().map(|run| figure.of(run)).collect();
                if let Ok(interval) = mean_interval(&values, CONFIDENCE) {
                    let name = format!("{scope}.{measure}.{statistic}");
                    intervals.insert(name, interval.at_least(least));
                }
            }
        }
    }
    intervals
}
