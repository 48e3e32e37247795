//! `headway fit`: fits a workload file to a trace, and reports the quality of the fit.

use crate::args::{Destination, TraceFlags};
use crate::output::{self, OutputFormat};
use anyhow::Result;
use headway_report::{Table, csv, format};
use headway_study::planned::fitted_json;
use headway_workload::fit::{ClassFit, FitCandidate};
use headway_workload::{Arrivals, Fitted, rate};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Destination of the fitted workload.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FitFlags {
    /// File for the fitted workload, which --workload reads
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(crate) fit_out: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace: time,class,service as CSV, a Twitter cache trace, or the output of Redis' MONITOR
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    read: TraceFlags,
    #[command(flatten)]
    fit: FitFlags,
    #[command(flatten)]
    to: Destination,
}

impl FitFlags {
    /// Writes the workload file, if the user named one.
    pub(crate) fn write(&self, fitted: &Fitted, trace: &Path) -> Result<()> {
        let Some(path) = &self.fit_out else {
            return Ok(());
        };
        output::save("--fit-out", path, &workload_file(fitted, trace))
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let trace = self.read.read("TRACE", &self.trace)?;
        let fitted = trace.fit(name(&self.trace));
        self.fit.write(&fitted, &self.trace)?;
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(&fitted_json(&fitted), writer)?,
            OutputFormat::Csv => output::table_csv(&figures(&fitted), writer)?,
            OutputFormat::Table => {
                writeln!(writer, "{}\n\n{}", arrivals(&fitted), table(&fitted))?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The name of a workload fitted to this file.
pub(crate) fn name(trace: &Path) -> String {
    let stem = trace.file_stem().unwrap_or(trace.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// The workload file, with the quality of the fit in its head.
fn workload_file(fitted: &Fitted, trace: &Path) -> String {
    let source = trace.display().to_string().replace(char::is_control, "?");
    let mut head = format!("# Fitted to {source}: {}\n", arrivals(fitted));
    for class in &fitted.classes {
        let FitCandidate { name, ks, .. } = class.chosen();
        let class_name = class.name.replace(char::is_control, "?");
        head += &format!(
            "# {class_name}: {} requests, {name}, Kolmogorov-Smirnov distance {}\n",
            class.samples,
            format::significant(*ks, 2)
        );
    }
    head + &fitted.workload.to_toml()
}

/// The arrivals in a line.
pub(crate) fn arrivals(fitted: &Fitted) -> String {
    let fit = &fitted.arrivals;
    let process = match &fit.process {
        Arrivals::Gamma { cv } => format!("gamma arrivals of cv {}", format::significant(*cv, 3)),
        process => format!("{} arrivals", process.name()),
    };
    let requests: usize = fitted.classes.iter().map(|class| class.samples).sum();
    let rate = fit.rate_rps.map_or("–".into(), rate::format);
    let distance = fit
        .distances
        .iter()
        .find(|(name, _)| *name == fit.process.name());
    let distance = distance.map_or(String::new(), |(_, ks)| {
        format!(", distance {}", format::significant(*ks, 2))
    });
    let doubt = fit
        .doubt
        .map_or(String::new(), |doubt| format!("; {doubt}"));
    format!("{requests} requests at {rate} rps, {process}{distance}{doubt}")
}

fn table(fitted: &Fitted) -> Table {
    let columns = [
        "class",
        "requests",
        "share",
        "mean",
        "cv²",
        "fitted by",
        "distance",
        "next nearest",
    ];
    let mut table = Table::new(columns);
    for (fit, class) in fitted.classes.iter().zip(&fitted.workload.classes) {
        let chosen = fit.chosen();
        table.push([
            fit.name.clone(),
            fit.samples.to_string(),
            format::percent(class.share),
            format::duration_us(fit.mean_ns / 1e3),
            format::significant(fit.scv, 3),
            chosen.name.into(),
            format::significant(chosen.ks, 2),
            next(fit).map_or("–".into(), |one| {
                format!("{} {}", one.name, format::significant(one.ks, 2))
            }),
        ]);
    }
    table
}

/// The same for programs: unrounded, in the names of the JSON.
fn figures(fitted: &Fitted) -> Table {
    let columns = [
        "class",
        "count",
        "share",
        "service_us",
        "scv",
        "chosen",
        "ks",
        "next",
        "next_ks",
    ];
    let mut table = Table::new(columns);
    for (fit, class) in fitted.classes.iter().zip(&fitted.workload.classes) {
        let (chosen, next) = (fit.chosen(), next(fit));
        table.push([
            fit.name.clone(),
            fit.samples.to_string(),
            csv::figure(class.share),
            csv::figure(fit.mean_ns / 1e3),
            csv::figure(fit.scv),
            chosen.name.into(),
            csv::figure(chosen.ks),
            next.map_or(String::new(), |one| one.name.into()),
            next.map_or(String::new(), |one| csv::figure(one.ks)),
        ]);
    }
    table
}

/// The nearest distribution that was not chosen.
fn next(fit: &ClassFit) -> Option<&FitCandidate> {
    let others = fit
        .candidates
        .iter()
        .filter(|one| one.name != fit.chosen().name && one.name != "empirical");
    others.min_by(|a, b| a.ks.total_cmp(&b.ks))
}
