//! Runs all tasks of all experiments in parallel.

use crate::{Datum, ExperimentFile, ReproduceError, Reproduction, RunLength, Task};
use headway_sim::in_parallel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `experiments` on `threads` threads; the results are the same for any number of threads.
/// Calls `done` on the calling thread after every task, with the experiment's name and the number of
/// all tasks. Once `cutoff` is true no further task begins and those under way end early: the results are of the experiments that were complete.
///
/// # Errors
/// The first mistake in a file or failed run, in the order of the experiments.
pub fn run(
    experiments: &[ExperimentFile],
    length: RunLength,
    threads: usize,
    cutoff: Option<&Arc<AtomicBool>>,
    mut done: impl FnMut(&str, usize),
) -> Result<Vec<Reproduction>, ReproduceError> {
    let mut tasks: Vec<(usize, Task)> = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        let own = experiment.tasks(length, cutoff)?;
        tasks.extend(own.into_iter().map(|task| (index, task)));
    }
    let all = tasks.len();
    let is_over = || cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed));
    let outputs = in_parallel(
        &tasks,
        threads,
        |(_, task): &(usize, Task)| {
            let output = (!is_over()).then(|| (task.run)());
            // What a task gives that was cut off is of no use.
            output.filter(|_| !is_over())
        },
        |(index, _), _| done(&experiments[*index].name, all),
    );
    let mut given: Vec<Option<Vec<Vec<Datum>>>> = vec![Some(Vec::new()); experiments.len()];
    for ((index, _), output) in tasks.into_iter().zip(outputs) {
        match output {
            Some(output) => {
                let output = output?;
                given[index]
                    .iter_mut()
                    .for_each(|given| given.push(output.clone()));
            }
            None => given[index] = None,
        }
    }
    let each = experiments.iter().zip(given);
    let complete = each.filter_map(|(experiment, given)| Some((experiment, given?)));
    complete
        .map(|(experiment, given)| Reproduction::of(experiment, length, given))
        .collect()
}
