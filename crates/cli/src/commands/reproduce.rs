//! `headway reproduce`: repeats a figure or table of a paper, next to the printed one.

use crate::args;
use crate::error::usage;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress;
use anyhow::Result;
use clap::ValueEnum;
use headway_reproduce::hosted::{self, HostedExperiment};
use headway_reproduce::live::{self, LiveExperiment};
use headway_reproduce::measured::{MeasuredExperiment, MeasuredResult, MeasuredSettings, listing};
use headway_reproduce::racked::{self, RackedExperiment};
use headway_reproduce::replayed::{self, ReplayedExperiment};
use headway_reproduce::{
    ExperimentFile, MEASURED_NAMES, NAMES, Reproduction, RunLength, is_experiment_file, run, show,
    unknown_experiment,
};
use headway_sim::available_threads;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to reproduce: names of the list, the beginning of some (persephone), experiment files, or all
    #[arg(value_name = "NAME|FILE|all", required_unless_present = "list")]
    names: Vec<String>,
    /// List the experiments
    #[arg(long, conflicts_with_all = ["names", "fast", "html", "server", "workers", "seed", "costs"])]
    list: bool,
    /// A tenth of the requests (live: a minute), for a first impression with rough tails and verdicts
    #[arg(long)]
    fast: bool,
    /// Threads; the figures do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Live: the server program [default: the one in target/]; PATH-plain is the server without probes
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Live: workers [default: one core less than the machine has, since the dispatcher takes one]
    #[arg(long, value_name = "N", value_parser = args::workers)]
    workers: Option<usize>,
    /// Live: seed of arrivals, keys and flows
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Live, without a network: this machine's costs for the simulations, a file of `headway calibrate -o FILE` [default: measured first, some seconds]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Also write a page with the curves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Format of the result
    #[arg(long, value_enum, default_value_t)]
    format: ReproduceFormat,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ReproduceFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// In the format of docs/reproduction.md
    Markdown,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.list {
            return self.print_list();
        }
        let experiments = match chosen(&self.names)? {
            ChosenExperiments::Simulated(experiments) => experiments,
            ChosenExperiments::Measured(measure) => return measure(&self),
        };
        let is_for_live = self.server.is_some() || self.workers.is_some() || self.seed.is_some();
        if is_for_live || self.costs.is_some() {
            let live = MEASURED_NAMES.join(", ");
            let remedy = format!("what is measured live is {live}");
            let flags = "--server, --workers, --seed, --costs";
            return Err(usage(
                flags,
                format!("simulations have none of them; {remedy}"),
            ));
        }
        let length = if self.fast {
            RunLength::Fast
        } else {
            RunLength::Full
        };
        let bar = progress::bar(0, "simulating");
        let threads = self.threads.unwrap_or_else(available_threads);
        let interrupt = Interrupt::listen()?;
        let cutoff = interrupt.flag();
        let results = run(&experiments, length, threads, Some(&cutoff), |name, all| {
            bar.set_length(all as u64);
            bar.set_message(name.to_owned());
            bar.inc(1);
        });
        bar.finish_and_clear();
        let results = results.map_err(|error| usage("reproduce", error))?;
        if let Some(path) = &self.html {
            output::page(path, &show::page(&results))?;
        }
        let cut_off = results.len() < experiments.len();
        self.write(&results, cut_off)?;
        if !cut_off {
            return Ok(ExitCode::SUCCESS);
        }
        let (complete, all) = (results.len(), experiments.len());
        eprintln!("CUT OFF: {complete} of {all} experiments were complete");
        Ok(Interrupt::status())
    }

    fn print_list(&self) -> Result<ExitCode> {
        let experiments = ExperimentFile::all();
        let mut writer = output::open(self.output.as_deref())?;
        match self.format {
            ReproduceFormat::Json => output::json(&NAMES, writer)?,
            ReproduceFormat::Table | ReproduceFormat::Markdown => {
                writeln!(writer, "{}", show::listing(&experiments))?;
                let live = listing::<LiveExperiment>();
                writeln!(
                    writer,
                    "\nMeasured on this machine, no part of all:\n{live}"
                )?;
                let replayed = listing::<ReplayedExperiment>();
                writeln!(writer, "\nThe same without a network:\n{replayed}")?;
                let racked = listing::<RackedExperiment>();
                writeln!(writer, "\nThe same, servers behind a switch:\n{racked}")?;
                let hosted = listing::<HostedExperiment>();
                writeln!(
                    writer,
                    "\nThe same, applications that share cores:\n{hosted}"
                )?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure_live(&self, experiment: &LiveExperiment) -> Result<ExitCode> {
        self.refuse_costs()?;
        let settings = live::LiveSettings {
            server: self.server.clone(),
            fast: self.fast,
            workers: self.workers,
            seed: self.seed(),
        };
        let measured = with_bar(|progress| live::measure(experiment, &settings, progress))?;
        self.write_measured(&measured.map_err(|error| match error {
            live::LiveError::NoServer { .. } => usage(&experiment.name, error),
            other => other.into(),
        })?)
    }

    fn measure_replayed(&self, experiment: &ReplayedExperiment) -> Result<ExitCode> {
        let settings = self.settings()?;
        let costs = self.costs.as_deref().map(args::read_costs).transpose()?;
        let costs = costs.as_ref().map(|file| &file.costs);
        let measured =
            with_bar(|progress| replayed::measure(experiment, &settings, costs, progress))?;
        self.write_measured(&measured.map_err(|error| match error {
            replayed::ReplayedError::TooFewCores { .. } => usage(&experiment.name, error),
            replayed::ReplayedError::NotMeasured { .. } => usage("--costs", error),
            other => other.into(),
        })?)
    }

    fn measure_racked(&self, experiment: &RackedExperiment) -> Result<ExitCode> {
        self.refuse_costs()?;
        let settings = self.settings()?;
        let measured = with_bar(|progress| racked::measure(experiment, &settings, progress))?;
        self.write_measured(&measured?)
    }

    fn measure_hosted(&self, experiment: &HostedExperiment) -> Result<ExitCode> {
        self.refuse_costs()?;
        let settings = self.settings()?;
        let measured = with_bar(|progress| hosted::measure(experiment, &settings, progress))?;
        self.write_measured(&measured.map_err(|error| match error {
            hosted::HostedError::TooFewCores { .. } => usage(&experiment.name, error),
            other => other.into(),
        })?)
    }

    /// The settings of a measurement whose file gives servers and workers.
    fn settings(&self) -> Result<MeasuredSettings> {
        self.refuse_server()?;
        Ok(MeasuredSettings {
            command: std::env::current_exe()?,
            fast: self.fast,
            seed: self.seed(),
        })
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Refuses `--server` and `--workers` where the experiment's file gives them.
    fn refuse_server(&self) -> Result<()> {
        if self.server.is_some() || self.workers.is_some() {
            let why = "its file says what runs and how many workers there are: leave them out, or change a copy of the file";
            return Err(usage("--server, --workers", why));
        }
        Ok(())
    }

    /// Refuses `--costs` where no simulation takes a server's costs.
    fn refuse_costs(&self) -> Result<()> {
        if self.costs.is_none() {
            return Ok(());
        }
        let names: Vec<&str> = ReplayedExperiment::BUILT_IN
            .iter()
            .map(|file| file.name)
            .collect();
        let names = names.join(", ");
        let why = format!("only what runs without a network takes costs: {names}");
        Err(usage("--costs", why))
    }

    /// Writes the result of a measurement: of the rounds that were complete, where Ctrl-C ended it.
    fn write_measured(&self, result: &Option<impl MeasuredResult>) -> Result<ExitCode> {
        let complete = result.as_ref().map_or(Some(0), MeasuredResult::cut_off);
        let report = result.as_ref().map(MeasuredResult::report);
        if let (Some(path), Some(report)) = (&self.html, &report) {
            output::page(path, &report.page())?;
        }
        let mut writer = output::open(self.output.as_deref())?;
        match (self.format, &report) {
            (ReproduceFormat::Json, _) => {
                let results: Vec<_> = result.iter().collect();
                output::json(&report_of(&results, complete.is_some()), &mut writer)?;
            }
            (_, None) => {}
            (ReproduceFormat::Markdown, Some(report)) => write!(writer, "{}", report.markdown())?,
            (ReproduceFormat::Table, Some(report)) => writeln!(writer, "{}", report.text())?,
        }
        writer.flush()?;
        let Some(complete) = complete else {
            return Ok(ExitCode::SUCCESS);
        };
        eprintln!("CUT OFF: {complete} rounds were complete");
        Ok(Interrupt::status())
    }

    fn write(&self, results: &[Reproduction], cut_off: bool) -> Result<()> {
        let mut writer = output::open(self.output.as_deref())?;
        match self.format {
            ReproduceFormat::Json => {
                return output::json(&report_of(results, cut_off), writer);
            }
            ReproduceFormat::Markdown => write!(writer, "{}", show::markdown(results))?,
            ReproduceFormat::Table => {
                for result in results {
                    writeln!(writer, "{}", show::text(result))?;
                }
                if results.len() > 1 {
                    writeln!(writer, "{}", show::overview(results))?;
                }
            }
        }
        Ok(writer.flush()?)
    }
}

/// The results for programs.
fn report_of(results: &[impl Serialize], cut_off: bool) -> Value {
    let mut report = serde_json::json!({ "results": results });
    if cut_off {
        report["cut_off"] = true.into();
    }
    report
}

/// What a measurement tells of its progress, and asks whether it goes on.
type MeasuringProgress<'a> = dyn FnMut(usize, usize, &str) -> ControlFlow<()> + 'a;

/// Runs a measurement with a progress bar, until Ctrl-C.
fn with_bar<T>(measure: impl FnOnce(&mut MeasuringProgress<'_>) -> T) -> Result<T> {
    let interrupt = Interrupt::listen()?;
    let bar = progress::bar(0, "measuring");
    let measured = measure(&mut |done, of, what| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
        interrupt.go_on()
    });
    bar.finish_and_clear();
    Ok(measured)
}

/// The experiments that the user named.
enum ChosenExperiments {
    Simulated(Vec<ExperimentFile>),
    Measured(MeasureOne),
}

/// Measures an experiment and writes its result.
type MeasureOne = Box<dyn FnOnce(&Args) -> Result<ExitCode>>;

/// The experiments asked for, each once, in the order of the list. A live experiment runs alone, since simulations would take its
/// cores.
fn chosen(names: &[String]) -> Result<ChosenExperiments> {
    for name in names {
        match (measured_one(name)?, names) {
            (Some(measure), [_]) => return Ok(ChosenExperiments::Measured(measure)),
            (Some(_), _) => {
                let why = format!("'{name}' is measured live, so nothing else can run beside it");
                return Err(usage("reproduce", why));
            }
            (None, _) => {}
        }
    }
    Ok(ChosenExperiments::Simulated(simulated(names)?))
}

/// The measurement of that name or file, if there is one.
fn measured_one(name: &str) -> Result<Option<MeasureOne>> {
    let text = if is_experiment_file(name) {
        let text = read_text(Path::new(name), SETTINGS_BYTES_MAX);
        Some(text.map_err(|error| usage(name, error))?)
    } else {
        None
    };
    let text = text.as_deref();
    let kinds = [
        one_of_kind(name, text, Args::measure_live)?,
        one_of_kind(name, text, Args::measure_replayed)?,
        one_of_kind(name, text, Args::measure_racked)?,
        one_of_kind(name, text, Args::measure_hosted)?,
    ];
    Ok(kinds.into_iter().flatten().next())
}

/// The measurement of the built-in experiment of that name, or of a file's text, if it is of this kind.
fn one_of_kind<E: MeasuredExperiment + 'static>(
    name: &str,
    text: Option<&str>,
    measure: fn(&Args, &E) -> Result<ExitCode>,
) -> Result<Option<MeasureOne>> {
    let experiment = match text {
        None => E::named(name),
        Some(text) if E::is_one(text) => {
            Some(E::read(&stem(name), text).map_err(|error| usage(name, error))?)
        }
        Some(_) => None,
    };
    Ok(experiment.map(|experiment| {
        let measure: MeasureOne = Box::new(move |args| measure(args, &experiment));
        measure
    }))
}

fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn simulated(names: &[String]) -> Result<Vec<ExperimentFile>> {
    let mut built_in = vec![false; NAMES.len()];
    let mut files = Vec::new();
    for name in names {
        if is_experiment_file(name) {
            files.push(from_file(name)?);
            continue;
        }
        let matches = |known: &str| {
            if NAMES.contains(&name.as_str()) {
                known == name
            } else {
                name == "all" || known.starts_with(&format!("{name}-"))
            }
        };
        let mut found = false;
        for (chosen, known) in built_in.iter_mut().zip(NAMES) {
            if matches(known) {
                (*chosen, found) = (true, true);
            }
        }
        if !found {
            return Err(usage("reproduce", unknown_experiment(name)));
        }
    }
    let named = NAMES.iter().zip(built_in).filter(|(_, chosen)| *chosen);
    let named = named.filter_map(|(name, _)| ExperimentFile::named(name));
    Ok(named.chain(files).collect())
}

fn from_file(path: &str) -> Result<ExperimentFile> {
    let text =
        read_text(Path::new(path), SETTINGS_BYTES_MAX).map_err(|error| usage(path, error))?;
    ExperimentFile::read(&stem(path), &text).map_err(|error| usage(path, error))
}
