//! Comma-separated values: tables as shown, and runs with every figure unrounded.

use std::io::Write;

use ::csv::Writer;

use crate::run::{ClassResult, Run, Summary};
use crate::table::Table;

const RUN_COLUMNS: [&str; 15] = [
    "policy",
    "params",
    "level",
    "workload",
    "workers",
    "cores",
    "seed",
    "requests",
    "offered_rps",
    "achieved_rps",
    "load",
    "utilization",
    "preemptions",
    "overloaded",
    "sustained",
];
const CLASS_COLUMNS: [&str; 4] = ["class", "count", "dropped", "service_us"];
const STATISTICS: [&str; 6] = ["mean", "p50", "p90", "p99", "p999", "max"];

/// Writes `table` as CSV, header first.
///
/// # Errors
///
/// Whatever `writer` fails with.
pub fn write_table(table: &Table, writer: impl Write) -> ::csv::Result<()> {
    let mut csv = Writer::from_writer(writer);
    csv.write_record(table.columns())?;
    table
        .rows()
        .iter()
        .try_for_each(|row| csv.write_record(row))?;
    Ok(csv.flush()?)
}

/// Writes `runs` as CSV: a row for each class of each run, and a row for all classes, called `overall`.
///
/// Columns are named like the JSON fields they hold, `latency_us_p999` for instance; `params` is
/// JSON. A figure that does not exist is left empty.
///
/// # Errors
///
/// Whatever `writer` fails with.
pub fn write_runs(runs: &[Run], writer: impl Write) -> ::csv::Result<()> {
    let mut csv = Writer::from_writer(writer);
    csv.write_record(header())?;
    for run in runs {
        csv.write_record(row(run, overall_fields(run)))?;
        for class in &run.classes {
            csv.write_record(row(run, class_fields(class)))?;
        }
    }
    Ok(csv.flush()?)
}

fn header() -> Vec<String> {
    let fixed = RUN_COLUMNS
        .iter()
        .chain(&CLASS_COLUMNS)
        .map(|&name| name.to_owned());
    let figures = ["latency_us", "slowdown"]
        .iter()
        .flat_map(|measure| STATISTICS.map(|statistic| format!("{measure}_{statistic}")));
    fixed.chain(figures).collect()
}

fn row(run: &Run, class: Vec<String>) -> Vec<String> {
    let mut fields = run_fields(run);
    fields.extend(class);
    fields
}

fn run_fields(run: &Run) -> Vec<String> {
    let meta = &run.meta;
    let level = serde_json::to_value(meta.level).ok();
    vec![
        meta.policy.clone(),
        serde_json::Value::Object(meta.params.clone()).to_string(),
        level
            .as_ref()
            .and_then(|level| level.as_str())
            .unwrap_or_default()
            .to_owned(),
        meta.workload.clone(),
        meta.workers.to_string(),
        run.extras
            .cores
            .map_or(String::new(), |cores| cores.to_string()),
        meta.seed.to_string(),
        meta.requests.to_string(),
        figure(meta.offered_rps),
        figure(meta.achieved_rps),
        figure(meta.load),
        figure(meta.utilization),
        meta.preemptions.to_string(),
        meta.overloaded.to_string(),
        run.sustained().to_string(),
    ]
}

fn overall_fields(run: &Run) -> Vec<String> {
    let count: u64 = run.classes.iter().map(|class| class.count).sum();
    let mut fields = vec![
        "overall".to_owned(),
        count.to_string(),
        run.meta.dropped.to_string(),
    ];
    fields.push(String::new());
    fields.extend(figures(&run.overall.latency_us));
    fields.extend(figures(&run.overall.slowdown));
    fields
}

fn class_fields(class: &ClassResult) -> Vec<String> {
    let mut fields = vec![
        class.name.clone(),
        class.count.to_string(),
        class.dropped.to_string(),
    ];
    fields.push(figure(class.service_us));
    fields.extend(figures(&class.latency_us));
    fields.extend(figures(&class.slowdown));
    fields
}

fn figures(summary: &Summary) -> [String; 6] {
    let Summary {
        mean,
        p50,
        p90,
        p99,
        p999,
        max,
    } = *summary;
    [mean, p50, p90, p99, p999, max].map(figure)
}

/// A figure unrounded; nothing where it does not exist.
pub fn figure(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[test]
    fn each_class_of_a_run_is_a_row_with_every_column() {
        let mut bytes = Vec::new();
        write_runs(&[run()], &mut bytes).unwrap();
        let mut reader = ::csv::Reader::from_reader(&bytes[..]);
        let header = reader.headers().unwrap().clone();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let column = |name| header.iter().position(|column| column == name).unwrap();
        let classes: Vec<&str> = rows.iter().map(|row| &row[column("class")]).collect();
        assert_eq!(classes, ["overall", "short", "long"]);
        assert_eq!(&rows[1][column("slowdown_max")], "2");
        assert_eq!(&rows[1][column("params")], r#"{"delta":2}"#);
        assert_eq!(&rows[0][column("level")], "server");
    }

    #[test]
    fn cells_with_commas_are_quoted() {
        let mut bytes = Vec::new();
        write_table(&Table::new(["a", "b"]).row(["x,y", "1"]), &mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "a,b\n\"x,y\",1\n");
    }
}
