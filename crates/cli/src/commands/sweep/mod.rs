//! `headway sweep`: policies × loads, for curves.

mod from_python;
mod judge;
mod points;
mod show;

use super::sim::{LONGER, tell_few_samples};
use crate::args::{self, Circumstances, CostFlags, Destination, LengthFlags, Size, Traffic};
use crate::error::usage;
use crate::interrupt::{Interrupt, Interrupted};
use crate::learning;
use crate::output::{self, OutputFormat};
use crate::policy_flag::{self, Runs};
use crate::progress;
use anyhow::{Result, bail};
use from_python::{Argument, PlaceFlag, literal};
use headway_report::{Run, Slo, format};
use headway_sim::{Experiment, Offered, Precision, available_threads};
use headway_study::figures;
use headway_study::parse::{self, percent};
use headway_study::sweep::{SweepProgress, replicated};
use points::{SweepPoint, SweptPoints};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const DEFAULT_REQUESTS: u64 = 1_000_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more
    #[arg(long = "policy", value_name = policy_flag::VALUE, value_parser = Runs::Servers, hide_possible_values = true, long_help = Runs::Servers.help("A policy and its parameters; repeat for more"), default_values = ["c-fcfs", "darc"])]
    policies: Vec<String>,
    #[command(flatten)]
    traffic: Traffic,
    /// Loads: a list (0.2,0.5,0.8) or FROM..TO:STEP
    #[arg(long, value_name = "LIST", default_value = "0.1..0.95:0.05", conflicts_with_all = ["load", "rate"])]
    loads: String,
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    extent: LengthFlags,
    /// Replications per point with different seeds, two or more for intervals; with --until-ci their largest number [default: 1, or 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    replications: Option<u64>,
    /// Replicate each point until the 95 % interval is this tight: 2% of the estimate either way
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    until_ci: Option<f64>,
    /// The figure whose interval --until-ci makes tight: class.GET.latency.p99
    #[arg(
        long,
        value_name = "FIGURE",
        default_value = "overall.slowdown.p999",
        requires = "until_ci"
    )]
    ci_of: String,
    /// Went: sweeps beyond one machine run from Python
    #[arg(long, hide = true, value_name = "I/N")]
    shard: Option<String>,
    /// Went: sweeps beyond one machine run from Python
    #[arg(long, hide = true, value_name = "FILE", num_args = 0..)]
    merge: Option<Vec<PathBuf>>,
    /// Threads, or processes of --on; the figures do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Have the Python package run the points; the figures do not depend on it
    #[arg(long, value_enum, value_name = "WHERE")]
    on: Option<PlaceFlag>,
    /// The Python interpreter that has the package, for --on [default: $HEADWAY_PYTHON, or python3]
    #[arg(long, value_name = "PROGRAM", requires = "on")]
    python: Option<PathBuf>,
    /// A folder where each point is kept as soon as it is done, for --on: a sweep that was cut off goes on
    #[arg(long, value_name = "FOLDER", requires = "on")]
    store: Option<PathBuf>,
    #[command(flatten)]
    costs: CostFlags,
    #[command(flatten)]
    circumstances: Circumstances,
    /// SLO; name the points that meet it, and exit with 1 when none does: class.*.slowdown.p999<=10
    #[arg(long, value_name = "EXPR")]
    slo: Option<String>,
    /// Also write the curves as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.refuse_pieces()?;
        let slo = self.slo.as_deref().map(args::parse_slo).transpose()?;
        let experiments = self.experiments()?;
        let (mut swept, points) = self.simulate(experiments, slo.as_ref())?;
        swept.note_seeds(&points);
        if let Some(slo) = &slo {
            tell_few_samples(slo, points.iter().flat_map(|point| &point.runs));
            tell_doubts(&points);
        }
        if let Some(path) = &self.html {
            output::page(path, &show::page(&points))?;
        }
        self.write(&swept, &points)?;
        learning::tell(points.iter().flat_map(|point| &point.runs));
        if swept.cut_off {
            return Ok(Interrupt::status());
        }
        let hopeless = points.iter().all(|point| point.meets_slo == Some(false));
        Ok(if hopeless {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Refuses the flags that cut a sweep into pieces, and says what runs it on several machines instead.
    fn refuse_pieces(&self) -> Result<()> {
        let flag = match (&self.shard, &self.merge) {
            (Some(_), _) => "--shard",
            (None, Some(_)) => "--merge",
            (None, None) => return Ok(()),
        };
        let store = self.store.clone().unwrap_or_else(|| "points".into());
        let call = from_python::call(&self.arguments(PlaceFlag::Ray, Some(&store)));
        Err(usage(
            flag,
            format!(
                "a sweep is no longer cut into pieces; on several machines these lines run it (docs/python.md), as --on ray does:\n\
                 import headway\n\
                 {call}.frame()",
            ),
        ))
    }

    /// The arguments of the call in Python that is this sweep.
    fn arguments(&self, place: PlaceFlag, store: Option<&PathBuf>) -> Vec<Argument> {
        let policies: Vec<String> = self.policies.iter().map(|it| literal(it)).collect();
        let mut arguments: Vec<Argument> = vec![
            (None, format!("[{}]", policies.join(", "))),
            (None, literal(&self.traffic.workload)),
        ];
        arguments.push(match (self.traffic.load, self.traffic.rate) {
            (_, Some(rate)) => (Some("rate"), rate.to_string()),
            (Some(load), None) => (Some("loads"), format!("[{load}]")),
            (None, None) => (Some("loads"), literal(&self.loads)),
        });
        let setup = args::setup(&self.size, &self.extent, &self.costs, &self.circumstances);
        let (changes, single): (Vec<_>, Vec<_>) = setup
            .texts()
            .into_iter()
            .partition(|(name, _)| *name == "core-change");
        arguments.extend(
            single
                .iter()
                .map(|(name, text)| (Some(*name), literal(text))),
        );
        if !changes.is_empty() {
            let each: Vec<String> = changes.iter().map(|(_, text)| literal(text)).collect();
            arguments.push((Some("core-changes"), format!("[{}]", each.join(", "))));
        }
        let whole = |number: Option<u64>| number.map(|it| it.to_string());
        let path = |path: &PathBuf| literal(&path.display().to_string());
        let optional = [
            ("replications", whole(self.replications)),
            ("until-ci", self.until_ci.map(|it| it.to_string())),
            ("ci-of", self.until_ci.map(|_| literal(&self.ci_of))),
            ("threads", whole(self.threads.map(|it| it as u64))),
            ("store", store.map(path)),
        ];
        let given = optional.into_iter();
        arguments.push((Some("on"), literal(place.name())));
        arguments.extend(given.filter_map(|(name, value)| Some((Some(name), value?))));
        arguments
    }

    fn write(&self, swept: &SweptPoints, points: &[SweepPoint]) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(swept, writer),
            OutputFormat::Csv => output::runs_csv(&swept.runs, writer),
            OutputFormat::Table => {
                let table = output::shown(&show::table(points), self.to.output.as_deref());
                writeln!(writer, "{table}")?;
                if swept.cut_off {
                    writeln!(
                        writer,
                        "\nCUT OFF: interrupted before its end; these are the points that were done"
                    )?;
                }
                Ok(writer.flush()?)
            }
        }
    }

    /// Runs the sweep.
    fn simulate(
        &self,
        mut all: Vec<Experiment>,
        slo: Option<&Slo>,
    ) -> Result<(SweptPoints, Vec<SweepPoint>)> {
        let workload = all[0].workload.clone();
        let classes = workload.class_names();
        if let Some(slo) = slo {
            slo.check_classes(classes.iter().copied())
                .map_err(|error| usage("--slo", error))?;
        }
        let precision = self.precision(&classes)?;
        let threads = self.threads.unwrap_or_else(available_threads);
        let interrupt = Interrupt::listen()?;
        all.iter_mut()
            .for_each(|one| one.cutoff = Some(interrupt.flag()));
        let wanted = |runs: &[Run]| match &precision {
            None => self.replications.unwrap_or(1),
            Some(precision) => precision.wanted(runs),
        };
        let runs = if let Some(place) = self.on {
            self.in_python(place, &interrupt)?
        } else {
            let bar = progress::bar(0, "simulating");
            let runs = replicated(&all, threads, wanted, |progress| match progress {
                SweepProgress::More(runs) => bar.inc_length(runs),
                SweepProgress::Run => bar.inc(1),
            })?;
            bar.finish_and_clear();
            runs
        };
        let swept = SweptPoints::new(&all, runs);
        if swept.runs.is_empty() {
            bail!(Interrupted("no point of the sweep was done"));
        }
        let mut points = swept.points();
        if let Some(slo) = slo {
            judge::by_own_runs(&mut points, slo)?;
            if self.replications.is_none() && precision.is_none() && !swept.cut_off {
                judge::by_other_seeds(&mut points, &all, slo, threads)?;
            }
        }
        Ok((swept, points))
    }

    /// The runs of each point, by the Python package; none where it was interrupted.
    fn in_python(&self, place: PlaceFlag, interrupt: &Interrupt) -> Result<Vec<Vec<Run>>> {
        let python = from_python::interpreter(self.python.as_ref())?;
        let mut arguments = self.arguments(place, self.store.as_ref());
        if std::io::stderr().is_terminal() {
            arguments.push((Some("progress"), "True".into()));
        }
        let runs = from_python::run(&python, &from_python::call(&arguments), interrupt)?;
        Ok(runs.unwrap_or_default())
    }

    /// Policies, then loads; of the first seed.
    fn experiments(&self) -> Result<Vec<Experiment>> {
        let workload = args::scalable_workload(&self.traffic.workload)?;
        self.traffic
            .read
            .refuse("a sweep sets the loads, so it reads no trace")?;
        let offers = self.offers()?;
        let setup = args::setup(&self.size, &self.extent, &self.costs, &self.circumstances);
        let mut experiments = Vec::new();
        for policy in args::policies(&self.policies)? {
            for &offered in &offers {
                experiments.push(args::experiment(
                    &setup,
                    workload.clone(),
                    policy.clone(),
                    offered,
                    DEFAULT_REQUESTS,
                )?);
            }
        }
        Ok(experiments)
    }

    /// One load or rate where it is given, else the list.
    fn offers(&self) -> Result<Vec<Offered>> {
        let workers = self.size.load_cores();
        let of_load = |load| Offered::Load { load, workers };
        Ok(match (self.traffic.load, self.traffic.rate) {
            (_, Some(rate)) => vec![Offered::Rate(rate)],
            (Some(load), None) => vec![of_load(load)],
            (None, None) => {
                let loads = parse::loads(&self.loads).map_err(|error| usage("--loads", error))?;
                loads.into_iter().map(of_load).collect()
            }
        })
    }

    /// The precision that `--until-ci` asks for, if given.
    fn precision(&self, classes: &[&str]) -> Result<Option<Precision>> {
        let Some(relative) = self.until_ci else {
            return Ok(None);
        };
        let most = self.replications;
        Ok(Some(figures::precision(
            relative,
            &self.ci_of,
            most,
            classes,
        )?))
    }
}

/// Warns where a verdict is one seed's luck.
fn tell_doubts(points: &[SweepPoint]) {
    let doubted = points
        .iter()
        .filter(|point| point.seeds.is_some_and(|seeds| !seeds.agree()));
    let doubted = doubted.count();
    if doubted > 0 {
        eprintln!(
            "note: at {} of the sweep, seeds disagree whether the SLO is met: {LONGER}",
            format::counted(doubted, "point")
        );
    }
}
