//! The findings as one HTML page.

use crate::commands::demo::findings::{Findings, requests};
use crate::commands::demo::lane::Lane;
use crate::commands::demo::show;
use crate::commands::demo::theory::{self, Curve};
use headway_report::html::{Chart, Page, Series};
use headway_report::{Histogram, Run, Table, format};

const ABOUT: &str = "GETs take microseconds, SCANs milliseconds. A server that runs requests in order of arrival \
    makes GETs wait whenever all its workers run SCANs. The policies compared here had the same requests, sent to \
    the same service; they differ in which request runs next, and where.";

/// Requests that must lie beyond the last point of a curve: a tail of fewer is chance.
const BEYOND: u64 = 10;
/// Points of a curve in each decade.
const PER_DECADE: i32 = 6;

/// The whole page: topic, conclusion, curves and method.
pub(crate) fn page(findings: &Findings) -> Page {
    let mut page = Page::new("Short requests behind long ones")
        .paragraph(ABOUT)
        .table("The policies", &policies(findings))
        .table("By simulation, p99 latency", &findings.setup.simulated())
        .heading("Live, on this machine");
    for line in findings.conclusions() {
        page = page.paragraph(line.trim_start());
    }
    page = page.table("All rounds that count together", &show::table(findings));
    for line in findings.few_samples() {
        page = page.paragraph(&line);
    }
    for class in findings.setup.stage.workload.class_names() {
        page = page.chart(&tail(findings, class));
    }
    for class in findings.setup.stage.workload.class_names() {
        page = page.chart(&rounds(findings, class));
    }
    page = simulated(findings, page).heading("How it was measured");
    for line in findings.setup.lines().into_iter().chain(findings.conduct()) {
        page = page.paragraph(&line);
    }
    page.paragraph("Latencies count from the time at which a request was meant to leave to the time at which the \
                    kernel received its answer; slowdown is latency over the mean time of the class's handler. To \
                    repeat it:")
        .code(&findings.command)
}

/// One line about each policy.
fn policies(findings: &Findings) -> Table {
    let mut table = Table::new(["policy", "what it does"]);
    for lane in &findings.lanes {
        let name = lane.name.split(',').next().unwrap_or_default();
        let summary =
            headway_policy::Policy::find(name).map_or("", |policy| policy.about().summary);
        table.push([lane.name.as_str(), summary]);
    }
    table
}

/// Latency by percentile.
fn tail(findings: &Findings, class: &str) -> Chart {
    let title = format!(
        "{class}: how slow, and how rarely ({})",
        requests(findings.sample(class).basis)
    );
    let mut chart = Chart::new(title, "one request in … is slower", "latency, µs")
        .log_x()
        .log_y()
        .note(format!(
            "100 is the 99th percentile, 1000 the 99.9th. A curve ends where fewer than {BEYOND} requests lie \
             beyond."
        ));
    for lane in &findings.lanes {
        let recorder = lane.recorder(findings.sample(class));
        let classes = recorder.iter().flat_map(|recorder| recorder.classes());
        for record in classes.filter(|record| record.meta().name == class) {
            let name = label(lane, class);
            chart = chart.series(Series::new(name, quantiles(record.latency_ns())));
        }
    }
    chart
}

fn quantiles(latency_ns: &Histogram) -> Vec<(f64, f64)> {
    let last = latency_ns.count() as f64 / BEYOND as f64;
    let rarities = (1..).map(|step| 10_f64.powf(f64::from(step) / f64::from(PER_DECADE)));
    rarities
        .take_while(|one_in| *one_in <= last)
        .filter_map(|one_in: f64| {
            let ns = latency_ns.quantile(1.0 - 1.0 / one_in)?;
            Some((one_in, ns as f64 / 1e3))
        })
        .collect()
}

/// The p99 of each round.
fn rounds(findings: &Findings, class: &str) -> Chart {
    let of = findings.sample(class);
    let title = format!("{class}: p99 of each round ({})", requests(of.basis));
    let mut chart = Chart::new(title, "round", "p99 latency, µs").log_y();
    for lane in &findings.lanes {
        let counted = lane.rounds.iter().enumerate();
        let points = counted
            .filter(|(_, round)| lane.counts(round, of))
            .filter_map(|(index, round)| {
                Some((
                    (index + 1) as f64,
                    round.view(of.basis).run.class(class)?.latency_us.p99,
                ))
            });
        chart = chart.series(Series::new(label(lane, class), points.collect()));
    }
    chart.note(
        "The policies had the same requests in each round. Rounds that do not count are left out.",
    )
}

fn label(lane: &Lane, class: &str) -> String {
    if lane.starved.iter().any(|name| name == class) {
        format!("{} (starves {class})", lane.name)
    } else {
        lane.name.clone()
    }
}

fn simulated(findings: &Findings, page: Page) -> Page {
    let workers = findings.setup.stage.workers;
    let page = page
        .heading("By simulation")
        .paragraph(&format!(
            "The same policy code in virtual time, on an ideal machine: no cost of network, dispatch or hand-over, \
             and no noise. Service times are those measured above, {} requests a point. A curve ends where a class \
             starves.",
            theory::REQUESTS
        ))
        .chart(&by_load(&format!("{workers} workers, as above: all requests"), "p99.9 slowdown", &findings.setup.theory.here, |run| {
            run.overall.slowdown.p999
        }));
    let beyond = &findings.setup.theory.beyond;
    let all = theory::WORKERS;
    let mut page = page.chart(&by_load(
        &format!("{all} workers: all requests"),
        "p99.9 slowdown",
        beyond,
        |run| run.overall.slowdown.p999,
    ));
    for (index, class) in findings
        .setup
        .stage
        .workload
        .class_names()
        .iter()
        .enumerate()
    {
        page = page.chart(&by_load(
            &format!("{all} workers: {class}"),
            "p99.9 latency, µs",
            beyond,
            |run| run.classes[index].latency_us.p999,
        ));
    }
    page.paragraph(&format!(
        "With {workers} workers a reservation leaves SCANs {} of them, so that they wait longer and starve at a \
         lower load than they would without one. With {all} workers one reserved for GETs is {} of the machine: \
         GETs gain as much and SCANs lose little.",
        workers - 1,
        format::percent(1.0 / all as f64)
    ))
}

fn by_load(title: &str, y_label: &str, curves: &[Curve], measure: impl Fn(&Run) -> f64) -> Chart {
    let mut chart = Chart::new(title, "load", y_label).log_y();
    for curve in curves {
        let points = curve.sound().map(|run| (run.meta.load, measure(run)));
        chart = chart.series(Series::new(curve.name.clone(), points.collect()));
    }
    chart
}
