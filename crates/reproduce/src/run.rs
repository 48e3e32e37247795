//! Runs all tasks of all experiments in parallel.

use crate::{
    Datum, ExperimentFile, ExperimentKind, Figures, ReproduceError, Reproduction, RunLength, Task,
};
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
    let mut pieces = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for measure in &experiment.measure {
            let setting = experiment.setting(measure, length);
            let own = measure.tasks(&setting)?;
            pieces.extend(own.into_iter().map(|task| ExperimentTask {
                experiment: index,
                axis: measure.axis(),
                task,
            }));
        }
    }
    let all = pieces.len();
    let outputs = in_parallel(
        &pieces,
        threads,
        |piece: &ExperimentTask| (piece.task.run)(),
        |piece, _| {
            done(&experiments[piece.experiment].name, all);
        },
    );
    let mut collected = vec![Collected::default(); experiments.len()];
    for (piece, output) in pieces.into_iter().zip(outputs) {
        let Collected { figures, commands } = &mut collected[piece.experiment];
        let data: Vec<Datum> = output?;
        figures.extend(data.into_iter().map(|datum| on_axis(datum, &piece.axis)));
        let command = piece.task.command;
        commands.extend(command.filter(|command| !commands.contains(command)));
    }
    experiments
        .iter()
        .zip(collected)
        .map(|(experiment, collected)| {
            Reproduction::new(experiment, length, collected.figures, collected.commands)
        })
        .collect()
}

/// A task of one experiment.
struct ExperimentTask {
    /// The experiment's index.
    experiment: usize,
    /// The axis of its curves.
    axis: String,
    task: Task,
}

/// The results of an experiment's tasks.
#[derive(Clone, Default)]
struct Collected {
    figures: Figures,
    /// The commands that repeat the tasks, each once.
    commands: Vec<String>,
}

/// Sets the axis of a point; a single figure has none.
fn on_axis(mut datum: Datum, axis: &str) -> Datum {
    if datum.x.is_some() {
        datum.axis = axis.into();
    }
    datum
}
