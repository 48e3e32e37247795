//! A sweep as a table and as a page of curves.

use super::points::SweepPoint;
use headway_report::html::{Chart, Page, Series};
use headway_report::stats::{ConfidenceInterval, mean_interval};
use headway_report::{Run, Table, format};
use headway_sim::CONFIDENCE;
use headway_study::sweep::LEAST_SLOWDOWN;

impl SweepPoint {
    fn overloaded(&self) -> bool {
        self.runs.iter().any(|run| run.meta.overloaded)
    }

    /// The verdict in a word, or by how many seeds where they disagree.
    fn verdict(&self) -> Option<String> {
        let met = self.meets_slo?;
        let doubt = self.seeds.filter(|seeds| !seeds.agree());
        let word = || if met { "yes" } else { "no" }.to_owned();
        Some(doubt.map_or_else(word, |seeds| seeds.to_string()))
    }

    fn values(&self, measure: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(measure).collect()
    }

    /// The mean over replications, and its interval where there are several: at `least`, below which the measure cannot be.
    fn estimate(&self, least: f64, measure: impl Fn(&Run) -> f64) -> (f64, Option<(f64, f64)>) {
        let values = self.values(measure);
        match mean_interval(&values, CONFIDENCE) {
            Ok(interval) => {
                let ConfidenceInterval {
                    estimate, lo, hi, ..
                } = interval.at_least(least);
                (estimate, Some((lo, hi)))
            }
            Err(_) => (values[0], None),
        }
    }
}

pub(super) fn table(points: &[SweepPoint]) -> Table {
    let classes: Vec<String> = points[0].runs[0]
        .classes
        .iter()
        .map(|class| class.name.clone())
        .collect();
    let mut columns: Vec<String> = ["policy", "cores", "load", "slowdown p99.9"]
        .map(Into::into)
        .into();
    columns.extend(classes.iter().map(|class| format!("{class} p99.9")));
    columns.push("overloaded".into());
    if points[0].meets_slo.is_some() {
        columns.push("meets SLO".into());
    }
    let mut table = Table::new(columns);
    for point in points {
        let (slowdown, interval) = point.estimate(LEAST_SLOWDOWN, |run| run.overall.slowdown.p999);
        let mut row = vec![
            point.policy.clone(),
            point.runs[0].cores_shown(),
            format::significant(point.load, 3),
        ];
        row.push(match interval {
            Some((lo, hi)) => format!("{} [{}, {}]", short(slowdown), short(lo), short(hi)),
            None => short(slowdown),
        });
        for index in 0..classes.len() {
            let (p999, _) = point.estimate(0.0, |run| run.classes[index].latency_us.p999);
            row.push(format::duration_us(p999));
        }
        row.push(if point.overloaded() { "yes" } else { "" }.into());
        row.extend(point.verdict());
        table.push(row);
    }
    table
}

fn short(value: f64) -> String {
    format::significant(value, 3)
}

/// Curves of overall slowdown and of each class; points of overloaded runs are left out, since
/// their tails only measure the runs' length.
pub(super) fn page(points: &[SweepPoint]) -> Page {
    let first = &points[0].runs[0];
    let title = format!("{}, {} workers", first.meta.workload, first.meta.workers);
    let counts = points.iter().map(|point| point.runs.len());
    let (fewest, most) = (counts.clone().min(), counts.max());
    let replications = match (fewest, most) {
        (Some(fewest), Some(most)) if fewest != most => format!("{fewest} to {most}"),
        (fewest, _) => fewest.unwrap_or(0).to_string(),
    };
    let runs = if replications == "1" { "run" } else { "runs" };
    let intro = format!(
        "Simulated: {} requests a run, {replications} {runs} a point from seed {}. Overloaded runs are left out.",
        first.meta.requests, first.meta.seed
    );
    let slowdown = curves(
        "Slowdown, all classes",
        "p99.9 slowdown",
        LEAST_SLOWDOWN,
        points,
        |run| run.overall.slowdown.p999,
    );
    let mut page = Page::new(title).paragraph(&intro).chart(&slowdown);
    for (index, class) in first.classes.iter().enumerate() {
        let title = format!("Latency of {}", class.name);
        page = page.chart(&curves(&title, "p99.9 latency, µs", 0.0, points, |run| {
            run.classes[index].latency_us.p999
        }));
    }
    page.table("Every point", &table(points))
}

fn curves(
    title: &str,
    y_label: &str,
    least: f64,
    points: &[SweepPoint],
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
        let sound: Vec<&SweepPoint> = mine.iter().filter(|point| !point.overloaded()).collect();
        let estimates: Vec<_> = sound
            .iter()
            .map(|point| point.estimate(least, measure))
            .collect();
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
