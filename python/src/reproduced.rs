//! The figures of the papers, task by task, so that tasks run anywhere.

use crate::answers::text;
use crate::errors::{HeadwayError, mistaken_at};
use crate::interrupt::{Cutoff, apart};
use headway_reproduce::{Datum, ExperimentFile, NAMES, Reproduction, RunLength};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// An experiment, and the length of its runs.
#[derive(FromPyObject)]
pub(crate) struct ExperimentAsked {
    name: String,
    text: String,
    fast: bool,
}

impl ExperimentAsked {
    fn file(&self) -> PyResult<ExperimentFile> {
        ExperimentFile::read(&self.name, &self.text).map_err(refused)
    }

    fn length(&self) -> RunLength {
        if self.fast {
            RunLength::Fast
        } else {
            RunLength::Full
        }
    }
}

/// A figure on its way between processes. JSON has no infinity and tells none from no number, so values travel as texts, to the bit.
#[derive(Serialize, Deserialize)]
struct DatumText {
    system: String,
    what: String,
    axis: String,
    x: Option<String>,
    value: String,
    rests_on: Option<String>,
}

impl DatumText {
    fn of(datum: Datum) -> Self {
        Self {
            system: datum.system,
            what: datum.what,
            axis: datum.axis,
            x: datum.x.map(|x| x.to_string()),
            value: datum.value.to_string(),
            rests_on: datum.rests_on.map(|rests| rests.to_string()),
        }
    }

    fn datum(self) -> Result<Datum, std::num::ParseFloatError> {
        Ok(Datum {
            system: self.system,
            what: self.what,
            axis: self.axis,
            x: self.x.map(|x| x.parse()).transpose()?,
            value: self.value.parse()?,
            rests_on: self.rests_on.map(|rests| rests.parse()).transpose()?,
        })
    }
}

fn refused(error: headway_reproduce::ReproduceError) -> PyErr {
    mistaken_at("name", error)
}

/// The names of the experiments that are simulated.
#[pyfunction]
pub(crate) fn experiments() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// The name and the text of an experiment, built in or of a file.
#[pyfunction]
pub(crate) fn experiment(name_or_file: &str) -> PyResult<(String, String)> {
    ExperimentFile::text(name_or_file).map_err(refused)
}

/// The number of an experiment's tasks. Refuses what they would refuse, without a run.
#[pyfunction]
pub(crate) fn experiment_tasks(asked: ExperimentAsked) -> PyResult<usize> {
    let tasks = asked.file()?.tasks(asked.length(), None);
    Ok(tasks.map_err(refused)?.len())
}

/// What one task gives.
#[pyfunction]
pub(crate) fn experiment_task(
    py: Python<'_>,
    asked: ExperimentAsked,
    index: usize,
    cutoff: Option<&Cutoff>,
) -> PyResult<String> {
    let end = Cutoff::of_run(cutoff);
    let tasks = asked.file()?.tasks(asked.length(), Some(&end.cutoff));
    let mut tasks = tasks.map_err(refused)?;
    if index >= tasks.len() {
        let why = format!("there is no task {index}, only {}", tasks.len());
        return Err(HeadwayError::new_err(why));
    }
    let task = tasks.swap_remove(index);
    let data = apart(py, &end, None, |_| (task.run)())?.map_err(refused)?;
    text(&data.into_iter().map(DatumText::of).collect::<Vec<_>>())
}

/// The experiment's result, of what its tasks gave, in their order.
#[pyfunction]
pub(crate) fn reproduction(
    py: Python<'_>,
    asked: ExperimentAsked,
    answers: Vec<String>,
) -> PyResult<String> {
    let experiment = asked.file()?;
    let read = |answer: &String| {
        let data: Vec<DatumText> = serde_json::from_str(answer).map_err(|it| it.to_string())?;
        let data = data.into_iter().map(DatumText::datum);
        data.collect::<Result<Vec<Datum>, _>>()
            .map_err(|it| it.to_string())
    };
    let given: Result<Vec<_>, String> = answers.iter().map(read).collect();
    let given = given.map_err(|error| mistaken_at("store", error))?;
    let result = py.detach(|| Reproduction::of(&experiment, asked.length(), given));
    text(&result.map_err(refused)?)
}
