//! Runs all tasks of all experiments in parallel.

use crate::{Datum, ExperimentFile, ReproduceError, Reproduction, RunLength, Task};
use headway_sim::in_parallel;

/// Runs `experiments` on `threads` threads; the results are the same for any number of threads.
/// Calls `done` on the calling thread after every task, with the experiment's name and the number of
/// all tasks.
///
/// # Errors
/// The first mistake in a file or failed run, in the order of the experiments.
pub fn run(
    experiments: &[ExperimentFile],
    length: RunLength,
    threads: usize,
    mut done: impl FnMut(&str, usize),
) -> Result<Vec<Reproduction>, ReproduceError> {
    let mut tasks: Vec<(usize, Task)> = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        let own = experiment.tasks(length, None)?;
        tasks.extend(own.into_iter().map(|task| (index, task)));
    }
    let all = tasks.len();
    let outputs = in_parallel(
        &tasks,
        threads,
        |(_, task): &(usize, Task)| (task.run)(),
        |(index, _), _| {
            done(&experiments[*index].name, all);
        },
    );
    let mut given: Vec<Vec<Vec<Datum>>> = vec![Vec::new(); experiments.len()];
    for ((index, _), output) in tasks.into_iter().zip(outputs) {
        given[index].push(output?);
    }
    let each = experiments.iter().zip(given);
    each.map(|(experiment, given)| Reproduction::of(experiment, length, given))
        .collect()
}
