//! `headway sweep`: policies × loads, for curves.

use crate::args::{self, CostFlags, Destination, Extent, Traffic};
use crate::error::usage;
use crate::output::{self, Format};
use crate::progress;
use anyhow::Result;
use headway_report::html::{Chart, Page, Series};
use headway_report::stats::mean_interval;
use headway_report::{Run, Slo, Table, format};
use headway_sim::{Experiment, available_threads, in_parallel};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const DEFAULT_REQUESTS: u64 = 1_000_000;
const CONFIDENCE: f64 = 0.95;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A policy and its parameters; repeat for more
    #[arg(long = "policy", value_name = "NAME[,KEY=VALUE…]", default_values = ["c-fcfs", "darc"])]
    policies: Vec<String>,
    #[command(flatten)]
    traffic: Traffic,
    /// Loads: a list (0.2,0.5,0.8) or FROM..TO:STEP
    #[arg(long, value_name = "LIST", default_value = "0.1..0.95:0.05", conflicts_with_all = ["load", "rate"])]
    loads: String,
    /// Workers of the server
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = args::workers)]
    workers: usize,
    #[command(flatten)]
    extent: Extent,
    /// Runs of different seeds per point; from 2 on, intervals are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    replications: u64,
    /// Threads; the figures do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    costs: CostFlags,
    /// Say which points meet this; exit with 1 when none does: class.*.slowdown.p999<=10
    #[arg(long, value_name = "EXPR")]
    slo: Option<String>,
    /// Also write the curves as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    to: Destination,
}

/// A policy at a load, with all its replications.
struct Point {
    policy: String,
    load: f64,
    runs: Vec<Run>,
    /// Whether every replication meets the SLO, where there is one.
    meets_slo: Option<bool>,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let experiments = self.experiments()?;
        let slo = self
            .slo
            .as_deref()
            .map(|text| args::slo(text, &experiments[0].workload))
            .transpose()?;
        let bar = progress::bar(experiments.len() as u64, "simulating");
        let run = |experiment: &Experiment| experiment.run().map(|outcome| outcome.run);
        let threads = self.threads.unwrap_or_else(available_threads);
        let runs = in_parallel(&experiments, threads, run, |_, _| bar.inc(1));
        bar.finish_and_clear();
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let points = self.points(&experiments, &runs, slo.as_ref())?;
        if let Some(path) = &self.html {
            page(&points).write(path)?;
        }
        let mut writer = output::open(self.to.output.as_deref())?;
        match self.to.format {
            Format::Json => output::json(&serde_json::json!({ "runs": runs }), writer)?,
            Format::Csv => output::runs_csv(&runs, writer)?,
            Format::Table => {
                writeln!(writer, "{}", table(&points))?;
                writer.flush()?;
            }
        }
        let hopeless = points.iter().all(|point| point.meets_slo == Some(false));
        Ok(match hopeless {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    /// Policies, then loads, then replications.
    fn experiments(&self) -> Result<Vec<Experiment>> {
        let workload = self.traffic.workload()?;
        let mut experiments = Vec::new();
        for policy in args::policies(&self.policies)? {
            for load in loads(&self.loads)? {
                for replication in 0..self.replications {
                    let mut experiment = Experiment::new(workload.clone(), policy.clone())
                        .workers(self.workers)
                        .load(load)
                        .seed(self.extent.seed + replication);
                    experiment.length = self.extent.length(DEFAULT_REQUESTS);
                    self.costs.apply(&mut experiment)?;
                    experiment.check()?;
                    experiments.push(experiment);
                }
            }
        }
        Ok(experiments)
    }

    fn points(
        &self,
        experiments: &[Experiment],
        runs: &[Run],
        slo: Option<&Slo>,
    ) -> Result<Vec<Point>> {
        let per_point = self.replications as usize;
        let point = |(experiments, runs): (&[Experiment], &[Run])| {
            Ok(Point {
                policy: experiments[0].policy.to_string(),
                load: runs[0].meta.load,
                runs: runs.to_vec(),
                meets_slo: slo.map(|slo| all_meet(slo, runs)).transpose()?,
            })
        };
        experiments
            .chunks(per_point)
            .zip(runs.chunks(per_point))
            .map(point)
            .collect()
    }
}

fn all_meet(slo: &Slo, runs: &[Run]) -> Result<bool> {
    for run in runs {
        if !slo.evaluate(run)?.is_met() {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Point {
    fn overloaded(&self) -> bool {
        self.runs.iter().any(|run| run.meta.overloaded)
    }

    fn values(&self, measure: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(measure).collect()
    }

    /// The mean over replications, and its interval where there are several.
    fn estimate(&self, measure: impl Fn(&Run) -> f64) -> (f64, Option<(f64, f64)>) {
        let values = self.values(measure);
        match mean_interval(&values, CONFIDENCE) {
            Ok(interval) => (interval.estimate, Some((interval.lo, interval.hi))),
            Err(_) => (values[0], None),
        }
    }
}

fn table(points: &[Point]) -> Table {
    let classes: Vec<String> = points[0].runs[0]
        .classes
        .iter()
        .map(|class| class.name.clone())
        .collect();
    let mut columns = vec!["policy".into(), "load".into(), "slowdown p99.9".into()];
    columns.extend(classes.iter().map(|class| format!("{class} p99.9")));
    columns.push("overloaded".into());
    if points[0].meets_slo.is_some() {
        columns.push("meets SLO".into());
    }
    let mut table = Table::new(columns);
    for point in points {
        let (slowdown, interval) = point.estimate(|run| run.overall.slowdown.p999);
        let mut row = vec![point.policy.clone(), format::significant(point.load, 3)];
        row.push(match interval {
            Some((lo, hi)) => format!("{} [{}, {}]", short(slowdown), short(lo), short(hi)),
            None => short(slowdown),
        });
        for index in 0..classes.len() {
            let (p999, _) = point.estimate(|run| run.classes[index].latency_us.p999);
            row.push(format::duration_us(p999));
        }
        row.push(if point.overloaded() { "yes" } else { "" }.into());
        row.extend(
            point
                .meets_slo
                .map(|met| if met { "yes" } else { "no" }.into()),
        );
        table.push(row);
    }
    table
}

fn short(value: f64) -> String {
    format::significant(value, 3)
}

/// Curves of overall slowdown and of each class; points of overloaded runs are left out, since
/// their tails only measure the runs' length.
fn page(points: &[Point]) -> Page {
    let first = &points[0].runs[0];
    let title = format!("{}, {} workers", first.meta.workload, first.meta.workers);
    let intro = format!(
        "Simulated: {} requests a point, {} replications from seed {}. Overloaded runs are left out.",
        first.meta.requests,
        points[0].runs.len(),
        first.meta.seed
    );
    let slowdown = curves("Slowdown, all classes", "p99.9 slowdown", points, |run| {
        run.overall.slowdown.p999
    });
    let mut page = Page::new(title).paragraph(&intro).chart(&slowdown);
    for (index, class) in first.classes.iter().enumerate() {
        let title = format!("Latency of {}", class.name);
        page = page.chart(&curves(&title, "p99.9 latency, µs", points, |run| {
            run.classes[index].latency_us.p999
        }));
    }
    page.table("Every point", &table(points))
}

fn curves(
    title: &str,
    y_label: &str,
    points: &[Point],
    measure: impl Fn(&Run) -> f64 + Copy,
) -> Chart {
    let mut chart = Chart::new(title, "load", y_label).log_y();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let of_policy = rest
            .iter()
            .take_while(|point| point.policy == first.policy)
            .count();
        let (mine, others) = rest.split_at(of_policy);
        rest = others;
        let sound: Vec<&Point> = mine.iter().filter(|point| !point.overloaded()).collect();
        let estimates: Vec<_> = sound.iter().map(|point| point.estimate(measure)).collect();
        let line = sound
            .iter()
            .zip(&estimates)
            .map(|(point, (mean, _))| (point.load, *mean))
            .collect();
        let mut series = Series::new(first.policy.clone(), line);
        let errors: Vec<(f64, f64)> = estimates
            .iter()
            .filter_map(|(_, interval)| *interval)
            .collect();
        if !errors.is_empty() {
            series = series.error(errors);
        }
        chart = chart.series(series);
    }
    chart
}

/// `0.2,0.5` or `0.1..0.9:0.1`, both ends included.
fn loads(text: &str) -> Result<Vec<f64>> {
    let number = |part: &str| args::load(part.trim()).map_err(|error| usage("--loads", error));
    let Some((from, rest)) = text.split_once("..") else {
        return text.split(',').map(number).collect();
    };
    let Some((to, step)) = rest.split_once(':') else {
        return Err(usage(
            "--loads",
            format!("'{text}' has no step: write {text}:0.05"),
        ));
    };
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    let count = ((to - from) / step + 1.0 + 1e-9) as usize;
    if count == 0 || count > 10_000 {
        return Err(usage(
            "--loads",
            format!("'{text}' is {count} loads: 1 to 10000 are possible"),
        ));
    }
    // Rounded, so that 0.1 + 2 · 0.1 is 0.3 and a seed's run can be named by its load.
    Ok((0..count)
        .map(|index| ((from + index as f64 * step) * 1e9).round() / 1e9)
        .collect())
}
