//! Runs experiments, all their pieces side by side.

use crate::{Datum, Error, Experiment, Figures, Kind, Reproduction, Setting, Task};
use headway_sim::in_parallel;

/// How long the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As the files say.
    Full,
    /// A tenth of it: enough for a first impression, not to judge tails.
    Fast,
    /// No run has more requests than this, and phases last a hundredth: whether everything works.
    AtMost(u64),
}

impl Extent {
    /// So many requests, shortened.
    #[must_use]
    pub fn requests(self, full: u64) -> u64 {
        const LEAST: u64 = 20_000;
        match self {
            Self::Full => full,
            Self::Fast => (full / 10).max(LEAST).min(full),
            Self::AtMost(most) => full.min(most),
        }
    }

    /// So much virtual time, shortened.
    #[must_use]
    pub fn duration_ns(self, full: u64) -> u64 {
        let divisor = match self {
            Self::Full => 1,
            Self::Fast => 10,
            Self::AtMost(_) => 100,
        };
        (full / divisor).max(1)
    }
}

/// Runs `experiments` on so many threads; the results do not depend on how many. `done` hears, on
/// the calling thread, of every piece that is finished and how many there are in all.
///
/// # Errors
/// The first mistake in a file, or failure of a run, in the order of the experiments.
pub fn run(
    experiments: &[Experiment],
    extent: Extent,
    threads: usize,
    mut done: impl FnMut(&str, usize),
) -> Result<Vec<Reproduction>, Error> {
    let mut tasks: Vec<(usize, String, Task)> = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for measure in &experiment.measure {
            let setting = Setting::new(experiment, measure, extent);
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
            Reproduction::new(experiment, extent, figures, commands)
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
