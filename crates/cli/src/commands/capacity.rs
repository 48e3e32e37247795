//! `headway capacity`: the highest load that meets an SLO, per policy.

use super::sim::{LONGER, tell_few_samples};
use crate::args::{self, Circumstances, CostFlags, Destination, LengthFlags, Size};
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFormat};
use crate::policy_flag::{self, Runs};
use crate::progress;
use anyhow::Result;
use headway_report::{Capacity, CapacityReport, LoadRange, Table, csv, format};
use headway_sim::{Experiment, available_threads, in_parallel};
use headway_study::capacity::{self, SystemCapacity};
use headway_study::traffic;
use headway_workload::Workload;
use std::io::Write;
use std::process::ExitCode;

const DEFAULT_REQUESTS: u64 = 2_000_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more
    #[arg(long = "policy", value_name = policy_flag::VALUE, value_parser = Runs::Servers, hide_possible_values = true, long_help = Runs::Servers.help("A policy and its parameters; repeat for more"), default_values = ["c-fcfs", "darc"])]
    policies: Vec<String>,
    /// A workload by name or a workload file (TOML)
    #[arg(long, value_name = "NAME|FILE", default_value = "high-bimodal")]
    workload: String,
    /// The SLO: class.*.slowdown.p999<=10, overall.slowdown.p99<=5, class.GET.latency.p99<=250us
    #[arg(long, value_name = "EXPR", default_value = "class.*.slowdown.p999<=10")]
    slo: String,
    #[command(flatten)]
    size: Size,
    /// Precision of the answer: the search stops when it knows the load this exactly
    #[arg(
        long,
        value_name = "LOAD",
        default_value_t = 0.005,
        allow_negative_numbers = true
    )]
    tolerance: f64,
    #[command(flatten)]
    extent: LengthFlags,
    #[command(flatten)]
    costs: CostFlags,
    #[command(flatten)]
    circumstances: Circumstances,
    #[command(flatten)]
    to: Destination,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let workload = args::scalable_workload(&self.workload)?;
        let slo = args::slo(&self.slo, &workload)?;
        let search = capacity::search(self.tolerance)?;
        let mut experiments = self.experiments(&workload)?;
        let interrupt = Interrupt::listen()?;
        experiments
            .iter_mut()
            .for_each(|one| one.cutoff = Some(interrupt.flag()));
        let bar = progress::bar(experiments.len() as u64, "searching");
        let found = in_parallel(
            &experiments,
            available_threads(),
            |experiment: &Experiment| search.find_repeated(experiment, &slo),
            |_, _| bar.inc(1),
        );
        bar.finish_and_clear();
        let (mut results, mut rows) = (Vec::new(), Vec::new());
        for (experiment, found) in experiments.iter().zip(found) {
            let system = SystemCapacity::of(experiment, found?);
            if let Some(few) = &system.unshown {
                eprintln!("SLO not shown: {}: {few}: {LONGER}", experiment.policy);
            }
            tell_other_seeds(&system.capacity);
            rows.push(SystemRow {
                workers: experiment.total_workers(),
                is_shown: system.unshown.is_none(),
                cut_off: system.cut_off,
            });
            results.push(system.capacity);
        }
        let runs = results.iter().filter_map(|result| result.run.as_deref());
        tell_few_samples(&slo, runs);
        let found_any = results.iter().any(|result| result.load > 0.0);
        let report = CapacityReport {
            slo: self.slo.clone(),
            results,
            cut_off: rows.iter().any(|row| row.cut_off),
        };
        self.write(&report, &rows)?;
        if report.cut_off {
            return Ok(Interrupt::status());
        }
        if found_any {
            return Ok(ExitCode::SUCCESS);
        }
        if rows.iter().all(|row| row.is_shown) {
            let lowest = format::significant(search.lowest, 2);
            eprintln!("SLO missed: no policy meets it even at load {lowest}");
        }
        Ok(ExitCode::FAILURE)
    }

    fn experiments(&self, workload: &Workload) -> Result<Vec<Experiment>> {
        let setup = args::setup(&self.size, &self.extent, &self.costs, &self.circumstances);
        // The search sets the load.
        let offered = traffic::offered(workload, None, None, setup.load_cores(), 0.8)?;
        let policies = args::policies(&self.policies)?.into_iter();
        policies
            .map(|policy| {
                args::experiment(&setup, workload.clone(), policy, offered, DEFAULT_REQUESTS)
            })
            .collect()
    }

    fn write(&self, report: &CapacityReport, rows: &[SystemRow]) -> Result<()> {
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            OutputFormat::Json => output::json(report, writer),
            OutputFormat::Csv => output::table_csv(&figures(report, rows), writer),
            OutputFormat::Table => {
                writeln!(
                    writer,
                    "highest load with {}\n\n{}",
                    report.slo,
                    output::shown(&table(report, rows), self.to.output.as_deref())
                )?;
                if report.cut_off {
                    writeln!(
                        writer,
                        "\nCUT OFF: interrupted before its end; a load with ≥ is what the policy was seen to carry until then"
                    )?;
                }
                Ok(writer.flush()?)
            }
        }
    }
}

/// Warns where the load is one seed's luck.
fn tell_other_seeds(capacity: &Capacity) {
    let Some(LoadRange { lowest, highest }) = capacity.other_seeds else {
        return;
    };
    let shown = |load| format::significant(load, 3);
    eprintln!(
        "note: {}: runs of other seeds carry {} to {}, this one's {}: {LONGER}",
        capacity.spec,
        shown(lowest),
        shown(highest),
        shown(capacity.load)
    );
}

/// What the table says of a system beside its result.
struct SystemRow {
    workers: usize,
    /// Whether the runs were long enough to show the SLO.
    is_shown: bool,
    /// Whether its search was interrupted.
    cut_off: bool,
}

/// Each policy's rate as a part of the best's; 0 where none has any.
fn of_the_best(report: &CapacityReport) -> Vec<f64> {
    let rates = report.results.iter().map(|result| result.rps);
    let best = rates.clone().fold(0.0, f64::max);
    rates
        .map(|rps| if best > 0.0 { rps / best } else { 0.0 })
        .collect()
}

/// The table for programs: unrounded, in the names of the JSON.
fn figures(report: &CapacityReport, rows: &[SystemRow]) -> Table {
    let columns = [
        "policy",
        "workers",
        "cores",
        "serving_cores",
        "load",
        "rps",
        "of_best",
        "shown",
        "cut_off",
    ];
    let mut table = Table::new(columns);
    let parts = of_the_best(report);
    for ((result, row), part) in report.results.iter().zip(rows).zip(parts) {
        table.push([
            result.spec.clone(),
            row.workers.to_string(),
            result.cores.to_string(),
            result.serving_cores.to_string(),
            csv::figure(result.load),
            csv::figure(result.rps),
            csv::figure(part),
            row.is_shown.to_string(),
            row.cut_off.to_string(),
        ]);
    }
    table
}

fn table(report: &CapacityReport, rows: &[SystemRow]) -> Table {
    let mut table = Table::new(["policy", "cores", "load", "rate rps", "of the best"]);
    let parts = of_the_best(report);
    for ((result, row), part) in report.results.iter().zip(rows).zip(parts) {
        table.push([
            result.spec.clone(),
            format::cores(row.workers, result.cores, result.serving_cores),
            match (row.cut_off, row.is_shown) {
                (true, _) => format!("≥ {}", format::significant(result.load, 3)),
                (false, true) => format::significant(result.load, 3),
                (false, false) => "not shown".into(),
            },
            format::metric(result.rps),
            format::percent(part),
        ]);
    }
    table
}
