//! Runs experiments, all their pieces side by side.

use crate::{Datum, Error, ExperimentFile, Figures, Kind, Reproduction, RunLength, Setting, Task};
use headway_sim::in_parallel;

/// Runs `experiments` on so many threads; the results do not depend on how many. `done` hears, on
/// the calling thread, of every piece that is finished and how many there are in all.
///
/// # Errors
/// The first mistake in a file, or failure of a run, in the order of the experiments.
pub fn run(
    experiments: &[ExperimentFile],
    length: RunLength,
    threads: usize,
    mut done: impl FnMut(&str, usize),
) -> Result<Vec<Reproduction>, Error> {
    let mut tasks: Vec<(usize, String, Task)> = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for measure in &experiment.measure {
            let setting = Setting::new(experiment, measure, length);
            let own = measure.tasks(&setting)?;
            tasks.extend(own.into_iter().map(|task| (index, measure.axis(), task)));
        }
    }
    let all = tasks.len();
    let execute = |(_, _, task): &(usize, String, Task)| (task.run)();
    let outputs = in_parallel(&tasks, threads, execute, |(index, ..), _| {
        done(&experiments[*index].name, all);
    });
    let mut pieces: Vec<(Figures, Vec<String>)> = vec![Default::default(); experiments.len()];
    for ((index, axis, task), output) in tasks.into_iter().zip(outputs) {
        let (figures, commands) = &mut pieces[index];
        let data: Vec<Datum> = output?;
        figures.extend(data.into_iter().map(|datum| on_axis(datum, &axis)));
        commands.extend(task.command.filter(|command| !commands.contains(command)));
    }
    experiments
        .iter()
        .zip(pieces)
        .map(|(experiment, (figures, commands))| {
            Reproduction::new(experiment, length, figures, commands)
        })
        .collect()
}

/// A point of a curve gets the name of its axis.
fn on_axis(mut datum: Datum, axis: &str) -> Datum {
    if datum.x.is_some() {
        datum.axis = axis.into();
    }
    datum
}
