//! Where results go, and in which shape.

use crate::error::usage;
use anyhow::Result;
use clap::ValueEnum;
use headway_report::{Recorder, Run, Table, csv, hlog};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How a result is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
    /// For spreadsheets
    Csv,
}

/// Standard output, or the file that was named.
pub(crate) fn open(path: Option<&Path>) -> Result<Box<dyn Write>> {
    Ok(match path {
        None => Box::new(BufWriter::new(io::stdout().lock())),
        Some(path) => Box::new(BufWriter::new(create("--output", path)?)),
    })
}

/// The file that a flag names.
pub(crate) fn create(flag: &str, path: &Path) -> Result<File> {
    File::create(path)
        .map_err(|error| usage(flag, format!("cannot write {}: {error}", path.display())))
}

/// A table for where a result goes: no wider than a terminal, as it is in a file or a pipe.
pub(crate) fn shown(table: &Table, path: Option<&Path>) -> String {
    let terminal = match path {
        None => terminal_size::terminal_size_of(io::stdout()),
        Some(_) => None,
    };
    match terminal {
        Some((terminal_size::Width(columns), _)) => table.within(usize::from(columns)),
        None => table.to_string(),
    }
}

/// One JSON value and a newline.
pub(crate) fn json(value: &impl Serialize, mut writer: impl Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut writer, value)?;
    writeln!(writer)?;
    writer.flush()?;
    Ok(())
}

/// Runs as CSV, a row per class.
pub(crate) fn runs_csv(runs: &[Run], writer: impl Write) -> Result<()> {
    Ok(csv::write_runs(runs, writer)?)
}

/// A table as CSV.
pub(crate) fn table_csv(table: &Table, writer: impl Write) -> Result<()> {
    Ok(csv::write_table(table, writer)?)
}

/// Histograms of latency, one per class, as an HDR histogram log.
pub(crate) fn histograms(
    path: &Path,
    recorder: &Recorder,
    began: SystemTime,
    length: Duration,
) -> Result<()> {
    let file = create("--hlog", path)?;
    hlog::write_hlog(recorder, began, length, &mut &file)?;
    Ok(())
}
