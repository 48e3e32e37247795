//! The destinations and formats of results.

mod early;
mod replace;
mod wrap;

use anyhow::Result;
use clap::ValueEnum;
use headway_report::html::Page;
use headway_report::{Recorder, Run, Table, csv, hlog};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

pub(crate) use early::{destinations, early};
pub(crate) use replace::Output;
pub(crate) use wrap::for_stderr;

/// The format of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
    /// For spreadsheets
    Csv,
}

/// Standard output, or the file that `--output` names. A flush completes it. Lines of prose are no longer than a terminal is wide.
pub(crate) fn open(path: Option<&Path>) -> Result<Output> {
    match path {
        None => Ok(Output::terminal().unwrap_or_else(Output::standard)),
        Some(path) => create("--output", path),
    }
}

/// Standard output for a text that only programs read, also where it is a terminal.
pub(crate) fn verbatim() -> Output {
    Output::standard()
}

/// The file that a flag names. A flush puts it in its place.
pub(crate) fn create(flag: &str, path: &Path) -> Result<Output> {
    match early::take(flag, path) {
        Some(output) => Ok(output),
        None => Output::create(flag, path),
    }
}

/// Writes the file that a flag names.
pub(crate) fn save(flag: &str, path: &Path, text: &str) -> Result<()> {
    let mut file = create(flag, path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.flush()?)
}

/// Writes the page that `--html` names.
pub(crate) fn page(path: &Path, page: &Page) -> Result<()> {
    save("--html", path, &page.render())
}

/// A table for where a result goes: no wider than a terminal, as it is in a file or a pipe.
pub(crate) fn shown(table: &Table, path: Option<&Path>) -> String {
    let terminal = match path {
        None => terminal_size::terminal_size_of(std::io::stdout()),
        Some(_) => None,
    };
    match terminal {
        Some((terminal_size::Width(columns), _)) => table.within(usize::from(columns)),
        None => table.to_string(),
    }
}

/// One JSON value and a newline.
pub(crate) fn json(value: &impl Serialize, mut writer: impl Write) -> Result<()> {
    // The I/O error keeps the kind of the writer's error, since a closed pipe counts as success.
    serde_json::to_writer_pretty(&mut writer, value).map_err(std::io::Error::from)?;
    writeln!(writer)?;
    writer.flush()?;
    Ok(())
}

/// Runs as CSV, a row per class.
pub(crate) fn runs_csv(runs: &[Run], output: Output) -> Result<()> {
    Ok(csv::write_runs(runs, output.verbatim())?)
}

/// A table as CSV.
pub(crate) fn table_csv(table: &Table, output: Output) -> Result<()> {
    Ok(csv::write_table(table, output.verbatim())?)
}

/// Histograms of latency, one per class, as an HDR histogram log whose interval is the measured one, which began at `began`: its counts by its
/// length are the run's achieved rate.
pub(crate) fn histograms(
    path: &Path,
    recorder: &Recorder,
    run: &Run,
    began: SystemTime,
) -> Result<()> {
    let mut file = create("--hlog", path)?;
    hlog::write_hlog(recorder, began, run.measured_interval(), &mut file)?;
    Ok(file.flush()?)
}
