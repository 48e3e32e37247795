//! `headway reproduce`: a figure or table of a paper, next to what the paper prints.

use crate::error::{nearest, usage};
use crate::output;
use crate::progress;
use anyhow::Result;
use clap::ValueEnum;
use headway_reproduce::{Experiment, Extent, NAMES, Reproduction, run, show};
use headway_sim::available_threads;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to reproduce: names of the list, the beginning of some (persephone), experiment files, or all
    #[arg(value_name = "NAME|FILE|all", required_unless_present = "list")]
    names: Vec<String>,
    /// Say what there is
    #[arg(long, conflicts_with_all = ["names", "fast", "html"])]
    list: bool,
    /// A tenth of the requests: rough tails, rough verdicts, a first impression
    #[arg(long)]
    fast: bool,
    /// Threads; the figures do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Also write a page with the curves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// As docs/reproduction.md
    Markdown,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.list {
            return self.print_list();
        }
        let experiments = chosen(&self.names)?;
        let extent = match self.fast {
            true => Extent::Fast,
            false => Extent::Full,
        };
        let bar = progress::bar(0, "simulating");
        let threads = self.threads.unwrap_or_else(available_threads);
        let results = run(&experiments, extent, threads, |name, pieces| {
            bar.set_length(pieces as u64);
            bar.set_message(name.to_owned());
            bar.inc(1);
        });
        bar.finish_and_clear();
        let results = results.map_err(|error| usage("reproduce", error))?;
        if let Some(path) = &self.html {
            show::page(&results).write(path)?;
        }
        self.write(&results)?;
        Ok(ExitCode::SUCCESS)
    }

    fn print_list(&self) -> Result<ExitCode> {
        let experiments = Experiment::all();
        let mut writer = output::open(self.output.as_deref())?;
        match self.format {
            Format::Json => output::json(&NAMES, writer)?,
            Format::Table | Format::Markdown => {
                writeln!(writer, "{}", show::listing(&experiments))?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, results: &[Reproduction]) -> Result<()> {
        let mut writer = output::open(self.output.as_deref())?;
        match self.format {
            Format::Json => {
                return output::json(&serde_json::json!({ "results": results }), writer);
            }
            Format::Markdown => write!(writer, "{}", show::markdown(results))?,
            Format::Table => {
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

/// The experiments asked for, each once, in the order of the list.
fn chosen(names: &[String]) -> Result<Vec<Experiment>> {
    let mut built_in = vec![false; NAMES.len()];
    let mut files = Vec::new();
    for name in names {
        if Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(from_file(name)?);
            continue;
        }
        let matches = |known: &str| match NAMES.contains(&name.as_str()) {
            true => known == name,
            false => name == "all" || known.starts_with(&format!("{name}-")),
        };
        let mut found = false;
        for (chosen, known) in built_in.iter_mut().zip(NAMES) {
            if matches(known) {
                (*chosen, found) = (true, true);
            }
        }
        if !found {
            return Err(unknown(name));
        }
    }
    let named = NAMES.iter().zip(built_in).filter(|(_, chosen)| *chosen);
    let named = named.filter_map(|(name, _)| Experiment::named(name));
    Ok(named.chain(files).collect())
}

fn from_file(path: &str) -> Result<Experiment> {
    let text = std::fs::read_to_string(path).map_err(|error| usage(path, error))?;
    let stem = Path::new(path).file_stem().unwrap_or_default();
    Experiment::read(&stem.to_string_lossy(), &text).map_err(|error| usage(path, error))
}

fn unknown(name: &str) -> anyhow::Error {
    let remedy = match nearest(name, NAMES) {
        Some(known) => format!("did you mean '{known}'?"),
        None => "`headway reproduce --list` says what there is".into(),
    };
    usage(
        "reproduce",
        format!("no experiment is called '{name}'; {remedy}"),
    )
}
