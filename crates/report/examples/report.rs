//! Writes a report with a chart, a table and a comparison: `cargo run -p headway-report --example
//! report -- report.html`. The figures are M/G/1 theory, not a measurement.

use headway_report::Table;
use headway_report::format::significant;
use headway_report::html::{Chart, Page, Series};

/// Extreme Bimodal: mean service and its second moment, in µs and µs².
const MEAN_US: f64 = 0.995 * 0.5 + 0.005 * 500.0;
const SECOND_MOMENT_US2: f64 = 0.995 * 0.25 + 0.005 * 250_000.0;

/// The Pollaczek–Khinchine mean wait of one first-come-first-served worker, in µs.
fn fcfs_wait_us(load: f64) -> f64 {
    load / MEAN_US * SECOND_MOMENT_US2 / (2.0 * (1.0 - load))
}

/// Mean slowdown of the short class: first come first served, or shared by time slices.
fn curves() -> [Series; 2] {
    let loads: Vec<f64> = (1..20).map(|step| f64::from(step) * 0.05).collect();
    let fcfs = loads
        .iter()
        .map(|&load| (load, 1.0 + fcfs_wait_us(load) / 0.5))
        .collect();
    let sharing = loads
        .iter()
        .map(|&load| (load, 1.0 / (1.0 - load)))
        .collect();
    [
        Series::new("first come, first served", fcfs),
        Series::new("processor sharing", sharing),
    ]
}

fn main() -> std::io::Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "report.html".to_owned());
    let [fcfs, sharing] = curves();
    let mut table = Table::new(["load", "first come, first served", "processor sharing"]);
    for (fcfs, sharing) in fcfs.points.iter().zip(&sharing.points).step_by(4) {
        table.push([fcfs.0, fcfs.1, sharing.1].map(|value| significant(value, 3)));
    }
    let chart = Chart::new(
        "Short requests wait for long ones",
        "load",
        "mean slowdown, short class",
    )
    .log_y()
    .series(fcfs)
    .series(sharing)
    .series(Series::new("SLO", vec![(0.05, 10.0), (0.95, 10.0)]).dashed())
    .note("One worker, Poisson arrivals, 99.5 % × 0.5 µs and 0.5 % × 500 µs.");
    println!("{table}");
    Page::new("Extreme Bimodal on one worker")
        .paragraph("Mean slowdowns by theory, Pollaczek–Khinchine and processor sharing.")
        .chart(&chart)
        .table("Some of the loads", &table)
        .write(path)
}
